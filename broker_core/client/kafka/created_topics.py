"""The result of creating topics: an error for each failed one, and the server's facts of the others (KIP-525)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from broker_core.client.client_errors import ClientError
from broker_core.client.kafka.configs import Config
from broker_core.client.kafka.kafka_errors import KafkaException
from broker_core.client.kafka.results import Results

__all__ = ["CreateTopicsResult", "CreatedTopic"]


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """The facts of a created topic in a server's answer."""

    topic_id: uuid.UUID
    num_partitions: int
    replication_factor: int
    config: Config


class CreateTopicsResult(Results[str, None]):
    """Results by name. A topic that could not be created raises its error everywhere.

    The other methods give facts of a created topic. As in Kafka's own client, they may still raise for it:
    :exc:`~.kafka_errors.TopicAuthorizationException` if the client may not describe configs,
    :exc:`~.kafka_errors.UnsupportedVersionException` if the server is too old (before 2.4).
    """

    def __init__(
        self,
        rows: Mapping[str, ClientError | None],
        created: Mapping[str, CreatedTopic | KafkaException],
    ) -> None:
        super().__init__(rows)
        self._created = dict(created)

    def config(self, name: str) -> Config:
        """All configs of the topic in force."""
        return self._made(name).config

    def num_partitions(self, name: str) -> int:
        return self._made(name).num_partitions

    def replication_factor(self, name: str) -> int:
        return self._made(name).replication_factor

    def topic_id(self, name: str) -> uuid.UUID:
        """The id; zero from a server without ids (before 2.8)."""
        return self._made(name).topic_id

    def _made(self, name: str) -> CreatedTopic:
        self[name]
        made = self._created[name]
        if isinstance(made, KafkaException):
            raise made.copy()
        return made
