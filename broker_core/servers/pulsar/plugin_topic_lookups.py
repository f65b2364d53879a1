"""Lookups of topics that plugins list or hide; all others are left to the catalogue or to the brokers.

A hidden topic is answered as a topic that does not exist, and the brokers are not asked: asking about a topic may
create it, and the answer would tell that it exists. Where brokers list, the listed names of a topic are unknown before
they are asked. So the mask is asked about the name and its first partitions; where it shows only some of them, the
brokers are asked in the way that creates no topic.
"""

from __future__ import annotations

from typing import Final

from broker_core.access.asker import Asker
from broker_core.errors import Cause, InvalidName, ListingFailed, ServerError
from broker_core.names import TopicName
from broker_core.pipeline import Topic, TopicsByName, partition_names
from broker_core.plugins import PluginFailed
from broker_core.servers.pulsar.lookup_access import topic_of
from broker_core.servers.pulsar.lookup_service import LookupService
from broker_core.wire.pulsar import HEADER_SIZE, MOST_PARTITIONS, BaseCommand, FeatureFlags, commands

__all__ = ["PluginTopicLookups"]

#: Partitions that a mask is asked about where their number is not known.
_GUESSED: Final = 64


class PluginTopicLookups:
    """In front of the lookups of a catalogue (``lists_itself``), or of those that are relayed to a cluster."""

    def __init__(self, describing: TopicsByName, behind: LookupService, *, lists_itself: bool) -> None:
        self._describing = describing
        self._behind = behind
        self._lists_itself = lists_itself

    @property
    def feature_flags(self) -> FeatureFlags:
        return self._behind.feature_flags

    async def answer(self, command: BaseCommand, asker: Asker, /) -> bytes:
        """The whole frame that answers the command. Raises :exc:`ListingFailed`."""
        try:
            topic = topic_of(command)
        except InvalidName:
            return await self._behind.answer(command, asker)  # that no plugin lists
        describing = self._describing
        is_metadata = command.type == BaseCommand.PARTITIONED_METADATA
        if not describing.concerns(topic):
            if self._lists_itself and is_metadata:
                known = describing.listed_now(topic, asker)
                if known is not None:
                    exists = known.exists
                    return (
                        _partitions(command, topic, known.partitions) if exists else _missing(command, topic)
                    )
            return await self._behind.answer(command, asker)
        if is_metadata:
            return await self._metadata(command, topic, asker)
        if not self._lists_itself and not await self._may_be_seen(topic, asker):
            return _not_found(command, topic)
        return await self._behind.answer(command, asker)

    async def _metadata(self, command: BaseCommand, topic: TopicName, asker: Asker) -> bytes:
        describing = self._describing
        if not self._lists_itself:
            return await self._metadata_of_brokers(command, topic, asker)
        found = await describing.topic(topic, asker)
        if found is None or not found.listed:
            found = await describing.of_default_lister(topic, asker, found)
            if not found.exists:  # a topic that no listing has, as those that brokers keep for themselves
                if not await describing.is_visible(topic, asker, None):
                    return _missing(command, topic)
                return await self._behind.answer(command, asker)
        return await self._told(command, topic, asker, found)

    async def _told(self, command: BaseCommand, topic: TopicName, asker: Asker, found: Topic) -> bytes:
        if not found.exists or not await self._describing.is_visible(topic, asker, found):
            return _missing(command, topic)
        return _partitions(command, topic, found.partitions)

    # -- brokers

    async def _metadata_of_brokers(self, command: BaseCommand, topic: TopicName, asker: Asker) -> bytes:
        """A plugin that describes topics knows best, then the brokers do; names that are listed tell the least.

        Producers send by this number, and the listing of a plugin may be of a part of the partitions, or late.
        """
        describing = self._describing
        answered: set[str] = set()
        found = await describing.topic(topic, asker, by_hook=True, answered=answered)
        if found is not None and found.exists:
            return await self._told(command, topic, asker, found)
        if not describing.is_listed_by_plugins(topic):
            return await self._relayed(command, topic, asker)
        answer = await self._relayed(_without_creation(command), topic, asker)
        if commands.decode(answer[HEADER_SIZE:]).partitionMetadataResponse.error != ServerError.TopicNotFound:
            return answer
        found = await self._listed(topic, asker, answered)
        if found is not None and found.exists:
            return await self._told(command, topic, asker, found)
        return await self._relayed(command, topic, asker)

    async def _listed(self, topic: TopicName, asker: Asker, answered: set[str]) -> Topic | None:
        """What plugins list; one that fails lists nothing here, since the brokers know their topics without it."""
        try:
            return await self._describing.topic(topic, asker, by_hook=False, answered=answered)
        except PluginFailed:
            return None  # counted and logged where it was asked

    async def _may_be_seen(self, topic: TopicName, asker: Asker) -> bool:
        """Whether brokers may be told of a topic by LOOKUP or GET_SCHEMA."""
        describing = self._describing
        if await describing.is_visible(topic, asker, None):
            return True
        answered: set[str] = set()
        found = await describing.topic(topic, asker, by_hook=True, answered=answered)
        found = found or await self._listed(topic, asker, answered)
        if found is not None and found.exists:
            return await describing.is_visible(topic, asker, found)
        if not await self._some_partition(topic, asker):
            return False
        question = BaseCommand(type=BaseCommand.PARTITIONED_METADATA)
        question.partitionMetadata.topic = str(topic)
        question.partitionMetadata.request_id = 0
        question.partitionMetadata.metadata_auto_creation_enabled = False
        return await self._seen_there(question, topic, asker) is not None

    async def _relayed(self, command: BaseCommand, topic: TopicName, asker: Asker) -> bytes:
        """What the brokers say of a topic, unless it is hidden."""
        describing = self._describing
        if not await describing.is_visible(topic, asker, None):
            if not await self._some_partition(topic, asker):
                return _missing(command, topic)
            # Its partitions, if it has any, may be seen; if it has none, it is hidden, and must not be made.
            question = _without_creation(command)
        else:
            question = command
        answer = await self._seen_there(question, topic, asker)
        return _missing(command, topic) if answer is None else answer

    async def _some_partition(self, topic: TopicName, asker: Asker) -> bool:
        return topic.partition < 0 and await self._describing.some_visible(
            topic, asker, partition_names(topic, 0, _GUESSED)
        )

    async def _seen_there(self, question: BaseCommand, topic: TopicName, asker: Asker) -> bytes | None:
        """The brokers' answer to PARTITIONED_METADATA; ``None`` where none of the names that it tells may be seen."""
        frame = await self._behind.answer(question, asker)
        answer = commands.decode(frame[HEADER_SIZE:])
        body = answer.partitionMetadataResponse
        has_some = answer.type == BaseCommand.PARTITIONED_METADATA_RESPONSE and body.partitions > 0
        known = Topic(body.partitions) if has_some else None
        return frame if await self._describing.is_visible(topic, asker, known) else None


def _without_creation(command: BaseCommand) -> BaseCommand:
    question = BaseCommand()
    question.CopyFrom(command)
    question.partitionMetadata.metadata_auto_creation_enabled = False
    return question


def _partitions(command: BaseCommand, topic: TopicName, partitions: int) -> bytes:
    if partitions > MOST_PARTITIONS:
        raise ListingFailed(
            f"Topic {topic} has a partition of index {partitions - 1}: clients count {MOST_PARTITIONS} at most",
            cause=Cause.INTERNAL,
            code=ServerError.MetadataError,
        )
    return commands.partitioned_metadata_response(command.partitionMetadata.request_id, partitions)


def _missing(command: BaseCommand, topic: TopicName) -> bytes:
    """What is said of a topic that does not exist: none is made by saying that it has no partitions."""
    if command.partitionMetadata.metadata_auto_creation_enabled:
        return commands.partitioned_metadata_response(command.partitionMetadata.request_id, 0)
    return _not_found(command, topic)


def _not_found(command: BaseCommand, topic: TopicName) -> bytes:
    return commands.refuse(command, ServerError.TopicNotFound, f"Topic {topic} does not exist")
