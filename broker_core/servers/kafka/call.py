"""One request of a Kafka client, as handlers get it, and what they can raise in place of an answer."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.services import KafkaServices, Node
from broker_core.wire.kafka import Fields, RequestHeader

__all__ = ["CloseClient", "KafkaCall"]


class CloseClient(Exception):
    """The connection is to be closed, since no answer would be understood rightly: an empty listing is read as no
    topics. ``reason`` is a label of the metrics; the message is logged.
    """

    def __init__(self, message: str, reason: str = "unanswered") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCall(Caller):
    """``body`` is the request of the version in ``header``. ``node`` is what the client's listener advertises.

    ``began`` is when the request came, in loop time.
    """

    header: RequestHeader
    body: Fields
    node: Node
    services: KafkaServices
    began: float = 0.0

    @property
    def version(self) -> int:
        return self.header.api_version
