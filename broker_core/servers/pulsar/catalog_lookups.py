"""Lookups of a server without a cluster: partitions, and a clear refusal of questions that only brokers can answer."""

from __future__ import annotations

from broker_core.access import Asker
from broker_core.errors import InvalidName, ServerError
from broker_core.memory import Keep
from broker_core.names import TopicName
from broker_core.pipeline import Pipeline
from broker_core.servers.pulsar.lookup_job import ask_rights, topic_of
from broker_core.service import Find, TopicAsker
from broker_core.wire.pulsar import BaseCommand, FeatureFlags, commands

__all__ = ["CatalogLookups", "missing", "not_found"]


class CatalogLookups:
    """A :class:`~broker_core.service.LookupService` for the topics of the embedded catalogue, or of a plugin."""

    def __init__(self, pipeline: Pipeline, find: Find) -> None:
        self._pipeline = pipeline
        self._find = find
        # True: asking for the partitions of a topic never creates one here.
        self.feature_flags = FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)

    async def answer(self, command: BaseCommand, asker: Asker, _keep: Keep | None = None, /) -> bytes:
        """The whole frame that answers the command. Raises :exc:`~broker_core.errors.ListingFailed`."""
        if command.type != BaseCommand.PARTITIONED_METADATA:
            await ask_rights(self._pipeline, command, asker)
            return commands.refuse(
                command,
                ServerError.NotAllowedError,
                "This server lists topics and serves none: it has no brokers behind it (set upstream.service_url)",
            )
        try:
            topic = topic_of(command)
        except InvalidName as error:
            return commands.refuse(command, ServerError.InvalidTopicName, str(error))
        partitions = await self._find.partitions(TopicAsker(asker=asker), topic)
        if partitions is None:
            return missing(command, topic)
        return commands.partitioned_metadata_response(command.partitionMetadata.request_id, partitions)


def missing(command: BaseCommand, topic: TopicName) -> bytes:
    """The answer about a missing topic: not "no partitions", which would create it."""
    if command.partitionMetadata.metadata_auto_creation_enabled:
        return commands.partitioned_metadata_response(command.partitionMetadata.request_id, 0)
    return not_found(command, topic)


def not_found(command: BaseCommand, topic: TopicName) -> bytes:
    """The refusal of a command about a topic that does not exist."""
    return commands.refuse(command, ServerError.TopicNotFound, f"Topic {topic} does not exist")
