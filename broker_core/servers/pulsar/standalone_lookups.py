"""Lookups without a cluster: partitions from the catalogue, and a clear refusal of what only brokers can answer."""

from __future__ import annotations

from typing import Protocol

from broker_core.access.asker import Asker
from broker_core.errors import InvalidName, ListingFailed, ServerError
from broker_core.errors.server_error import lookup_code
from broker_core.names import TopicName
from broker_core.servers.pulsar.lookup_access import topic_of
from broker_core.wire.pulsar import MOST_PARTITIONS, BaseCommand, FeatureFlags, commands

__all__ = ["Partitions", "StandaloneLookups"]


class Partitions(Protocol):
    """Where a standalone server finds the partitions of its topics."""

    async def partitions(self, topic: TopicName) -> int | None:
        """How many partitions a topic has, 0 for one without, ``None`` where it is unknown."""


class StandaloneLookups:
    """Without a cluster behind: partitions from the catalogue, and a clear refusal of what only brokers can answer."""

    def __init__(self, topics: Partitions) -> None:
        self._topics = topics
        # True: asking for the partitions of a topic never creates one here.
        self.feature_flags = FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)

    async def answer(self, command: BaseCommand, _asker: Asker, /) -> bytes:
        if command.type != BaseCommand.PARTITIONED_METADATA:
            return commands.refuse(
                command,
                ServerError.NotAllowedError,
                "This server lists topics and serves none: it has no brokers behind it (set upstream.service_url)",
            )
        question = command.partitionMetadata
        try:
            topic = topic_of(command)
        except InvalidName as error:
            return commands.refuse(command, ServerError.InvalidTopicName, str(error))
        try:
            partitions = await self._topics.partitions(topic)
        except ListingFailed as failure:
            return commands.refuse(command, lookup_code(failure.code), failure.message)
        if partitions is None:
            if not question.metadata_auto_creation_enabled:
                return commands.refuse(command, ServerError.TopicNotFound, f"Topic {topic} does not exist")
            partitions = 0  # what a broker that may create it would answer
        if partitions > MOST_PARTITIONS:
            return commands.refuse(
                command,
                ServerError.MetadataError,
                f"Topic {topic} has a partition of index {partitions - 1}: clients count {MOST_PARTITIONS} at most",
            )
        return commands.partitioned_metadata_response(question.request_id, partitions)
