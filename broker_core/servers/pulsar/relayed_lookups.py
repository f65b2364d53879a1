"""Lookups that are relayed to the brokers, unless a plugin describes the topic, or hides it.

A hidden topic is answered as a topic that does not exist, and the brokers are not asked: asking about a topic may
create it, and the answer would reveal that it exists. The listed names of a topic are unknown before the brokers are
asked. So the mask is asked about the name and its first partitions; if it shows only some of them, the brokers are
asked in the way that creates no topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker_core.access import Asker
from broker_core.errors import InvalidName, ServerError
from broker_core.memory import Keep
from broker_core.names import TopicName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api import ListingRequest
from broker_core.plugins import PluginFailed
from broker_core.servers.pulsar.catalog_lookups import missing, not_found
from broker_core.servers.pulsar.lookup_job import ask_rights, partitions_question, topic_of
from broker_core.service import Known, LookupService, PluginTopics, client_count, partition_names
from broker_core.wire.pulsar import HEADER_SIZE, BaseCommand, FeatureFlags, commands

__all__ = ["RelayedLookups"]

#: Partitions that a mask is asked about if their number is unknown.
_GUESSED: Final = 64


@dataclass(slots=True, eq=False)
class RelayedLookups:
    """Lookups before the ``brokers``, which get every lookup of a topic that no plugin is concerned with."""

    _pipeline: Pipeline
    _plugins: PluginTopics
    _brokers: LookupService

    @property
    def feature_flags(self) -> FeatureFlags:
        return self._brokers.feature_flags

    async def answer(self, command: BaseCommand, asker: Asker, keep: Keep | None = None, /) -> bytes:
        """The whole frame that answers the command. Raises :exc:`~broker_core.errors.ListingFailed`."""
        await ask_rights(self._pipeline, command, asker)
        try:
            topic = topic_of(command)
        except InvalidName:
            return await self._brokers.answer(command, asker, keep)  # that no plugin lists
        if not self._plugins.concern(topic.namespace):
            return await self._brokers.answer(command, asker, keep)
        request = self._pipeline.topic_questions.request(
            topic.namespace, topic.domain, asker, frozenset({"partitions"})
        )
        lookup = _RelayedLookup(self._pipeline, self._plugins, self._brokers, topic, request)
        if command.type == BaseCommand.PARTITIONED_METADATA:
            return await lookup.metadata(command)
        if not await lookup.may_be_seen():
            return not_found(command, topic)
        return await self._brokers.answer(command, asker, keep)


class _RelayedLookup:
    """One lookup of a topic that plugins have a say about."""

    def __init__(
        self,
        pipeline: Pipeline,
        plugins: PluginTopics,
        brokers: LookupService,
        topic: TopicName,
        request: ListingRequest,
    ) -> None:
        self._dispatcher = pipeline.dispatcher
        self._plugins = plugins
        self._brokers = brokers
        self._topic = topic
        self._request = request
        self._answered: set[str] = set()

    async def metadata(self, command: BaseCommand) -> bytes:
        """The number of partitions from a plugin that describes topics, else from the brokers, and last from listed
        names.

        Producers send by this number, and the listing of a plugin may have a part of the partitions, or be late.
        """
        described = await self._described()
        if described is not None:
            return await self._metadata_answer(command, described)
        if not self._dispatcher.lists(self._topic.namespace):
            return await self._relayed(command)
        answer = await self._relayed(_without_creation(command))
        if commands.decode(answer[HEADER_SIZE:]).partitionMetadataResponse.error != ServerError.TopicNotFound:
            return answer
        listed = await self._listed()
        return (
            await self._relayed(command) if listed is None else await self._metadata_answer(command, listed)
        )

    async def may_be_seen(self) -> bool:
        """Whether brokers may be asked about a topic by LOOKUP or GET_SCHEMA."""
        if await self._is_visible(Known()):
            return True
        found = await self._described() or await self._listed()
        if found is not None:
            return await self._is_visible(found)
        if not await self._some_partition():
            return False
        return await self._seen_there(partitions_question(str(self._topic))) is not None

    # -- plugins

    async def _described(self) -> Known | None:
        """The topic from plugins that describe it."""
        return await self._known(by_hook=True)

    async def _listed(self) -> Known | None:
        """The topic from plugins that list it; a failing plugin lists nothing here, since the brokers know their topics
        without it.
        """
        try:
            return await self._known(by_hook=False)
        except PluginFailed:
            return None  # counted and logged by the asking part

    async def _known(self, *, by_hook: bool) -> Known | None:
        topics = [self._topic]
        listed, described = await self._plugins.found(
            self._request, topics, {}, by_hook=by_hook, answered=self._answered
        )
        found = (described if listed is None else listed).get(self._topic)
        return found if found is not None and found.exists else None

    async def _is_visible(self, known: Known) -> bool:
        return (await self._plugins.shown(self._request, [(self._topic, known)]))[0]

    async def _metadata_answer(self, command: BaseCommand, found: Known) -> bytes:
        if not await self._is_visible(found):
            return missing(command, self._topic)
        count = client_count(self._topic, found.partitions)
        return commands.partitioned_metadata_response(command.partitionMetadata.request_id, count)

    # -- brokers

    async def _relayed(self, command: BaseCommand) -> bytes:
        """The brokers' answer about a topic, unless it is hidden."""
        if await self._is_visible(Known()):
            question = command
        elif await self._some_partition():
            # Its partitions, if it has any, may be seen; if it has none, it is hidden, and must not be made.
            question = _without_creation(command)
        else:
            return missing(command, self._topic)
        answer = await self._seen_there(question)
        return missing(command, self._topic) if answer is None else answer

    async def _some_partition(self) -> bool:
        names = partition_names(self._topic, 0, _GUESSED)
        return self._topic.partition < 0 and await self._plugins.some_visible(self._request, [names])

    async def _seen_there(self, question: BaseCommand) -> bytes | None:
        """The brokers' answer to PARTITIONED_METADATA; ``None`` if none of the names by it may be seen."""
        frame = await self._brokers.answer(question, self._request.asker)
        answer = commands.decode(frame[HEADER_SIZE:])
        has_body = answer.type == BaseCommand.PARTITIONED_METADATA_RESPONSE
        partitions = answer.partitionMetadataResponse.partitions if has_body else 0
        return frame if await self._is_visible(Known(partitions)) else None


def _without_creation(command: BaseCommand) -> BaseCommand:
    question = BaseCommand()
    question.CopyFrom(command)
    question.partitionMetadata.metadata_auto_creation_enabled = False
    return question
