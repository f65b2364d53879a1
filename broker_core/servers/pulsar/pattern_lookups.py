"""Lookups of patterns: Java looks its pattern up as if it were a topic, to watch it at the broker of the answer.

The answer is this server: a watch at a broker would show what plugins, masks and rules hide here. It is so without
watchers too: the client then learns here that it has to poll.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from broker_core.access import Access, Asker
from broker_core.errors import Cause, InvalidName, ListingFailed, ServerError
from broker_core.memory import Keep
from broker_core.names import NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.quantities import ListenAddress
from broker_core.servers.pulsar.listing_job import ClientPatterns, looks_like_a_pattern
from broker_core.servers.pulsar.lookup_job import partitions_question, topic_of
from broker_core.service import LookupService
from broker_core.settings import PulsarSettings, is_wildcard
from broker_core.wire.pulsar import HEADER_SIZE, BaseCommand, FeatureFlags, commands

__all__ = ["OwnAddress", "PatternLookups"]

#: The errors for a topic that does not exist, or not for this client.
_NO_TOPIC: Final = frozenset(
    {ServerError.TopicNotFound, ServerError.InvalidTopicName, ServerError.AuthorizationError}
)


class OwnAddress:
    """The addresses by which clients reach this server: known once it listens, if a port is a free one."""

    def __init__(self, settings: PulsarSettings) -> None:
        self._settings = settings
        self._names: dict[str, str] = {}
        self._plain = settings.listen
        self._tls = None if settings.tls is None else settings.tls.listen

    def listens(self, plain: tuple[str, int], tls: tuple[str, int] | None) -> None:
        """Note the addresses on which the server listens, since the settings may ask for a free port."""
        self._plain = ListenAddress(*plain)
        self._tls = None if tls is None else ListenAddress(*tls)

    async def urls(self) -> tuple[str, str | None]:
        """The service URLs without and with TLS."""
        settings = self._settings
        plain = settings.advertised or str(await self._reachable(self._plain, ""))
        if self._tls is None:
            return f"pulsar://{plain}", None
        host = "" if settings.tls is None else settings.tls.advertised
        return f"pulsar://{plain}", f"pulsar+ssl://{await self._reachable(self._tls, host)}"

    async def _reachable(self, listen: ListenAddress, host: str) -> ListenAddress:
        if not host:
            host = listen.host
            if is_wildcard(host):  # as a broker that has no advertisedAddress
                if host not in self._names:
                    self._names[host] = await asyncio.to_thread(socket.getfqdn)
                host = self._names[host]
        return ListenAddress(host, listen.port)


class PatternLookups:
    """Lookups of patterns, before all other lookups. ``patterns`` are patterns that could be names of topics."""

    def __init__(self, pipeline: Pipeline, lookups: LookupService, own: OwnAddress) -> None:
        self._pipeline = pipeline
        self._lookups = lookups
        self.own = own
        self.patterns = ClientPatterns()

    @property
    def feature_flags(self) -> FeatureFlags:
        return self._lookups.feature_flags

    async def answer(self, command: BaseCommand, asker: Asker, keep: Keep | None = None, /) -> bytes:
        """The whole frame that answers the command. Raises :exc:`ListingFailed`."""
        if command.type == BaseCommand.PARTITIONED_METADATA:
            frame = await self._lookups.answer(command, asker, keep)
            question = command.partitionMetadata
            may_create = question.metadata_auto_creation_enabled and looks_like_a_pattern(question.topic)
            if may_create and _error_of(frame) is None:
                self.patterns.note_topic(asker, question.topic)
            return frame
        if command.type == BaseCommand.LOOKUP and (asker, command.lookupTopic.topic) in self.patterns:
            namespace = _namespace_of(command)
            if namespace is not None and not await self._is_topic(command, asker):
                await self._pipeline.authorize(Access("list", namespace, None, asker))
                return commands.lookup_response(command.lookupTopic.request_id, *await self.own.urls())
        return await self._lookups.answer(command, asker, keep)

    async def _is_topic(self, command: BaseCommand, asker: Asker) -> bool:
        """Whether a topic of this name may be there, for this client; no topic is made by asking."""
        question = partitions_question(command.lookupTopic.topic)
        try:
            frame = await self._lookups.answer(question, asker)
        except ListingFailed as failure:
            return failure.cause not in {Cause.NAME, Cause.NOT_FOUND, Cause.DENIED}
        return _error_of(frame) not in _NO_TOPIC


def _error_of(frame: bytes) -> int | None:
    """The error of an answer about partitions; ``None`` if it has their number."""
    answer = commands.decode(frame[HEADER_SIZE:])
    if answer.type == BaseCommand.ERROR:
        return answer.error.error
    body = answer.partitionMetadataResponse
    return body.error if body.HasField("error") else None


def _namespace_of(command: BaseCommand) -> NamespaceName | None:
    """The namespace of a pattern, which may be no name of a topic."""
    try:
        return topic_of(command).namespace
    except InvalidName:
        pass
    parts = command.lookupTopic.topic.partition("://")[2].split("/")
    try:
        return NamespaceName.parse("/".join(parts[:2]))
    except InvalidName:
        return None
