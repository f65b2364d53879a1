"""A Pulsar cluster as a store of topics, the source of live snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from broker_core.access import Asker
from broker_core.client import LookupSession, TopicsAnswer
from broker_core.concurrency import in_thread
from broker_core.names import Mode, NamespaceName
from broker_core.upstream.pulsar.broker_credentials import Identities, Principal
from broker_core.upstream.pulsar.broker_failures import broker_failures
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.upstream.pulsar.web_service import web_service
from broker_core.upstream.snapshots import SHARED, StoreListing, TopicUpdate, UpdateReceiver, View
from broker_core.wire.pulsar import CommandWatchTopicUpdate

__all__ = ["ClusterStore"]

#: Bytes of an answer whose column is made in a thread.
_LARGE: Final = 64 * 1024
#: Bytes of an answer over HTTP at the most.
_MOST: Final = 1 << 30
#: A pattern that no topic matches, and the hash of no topics: a cheap question that brokers authorize as a listing.
_NONE: Final = "^$"
#: The pattern of all topics: brokers watch none of more than 50 characters.
_ALL: Final = ".*"
#: The share of all connections that may be for watches, of as many principals.
_WATCH_SHARE: Final = 4
_EMPTY_HASH: Final = "00000000"


class ClusterStore:
    """Brokers that list for each principal, or by ``shared`` connections for a role that may list for all.

    ``watches`` are the connections by which the cluster is watched, of the same principals.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        connections: UpstreamConnections,
        identities: Identities,
        shared: tuple[UpstreamConnections, Identities] | None = None,
        *,
        watches: UpstreamConnections,
    ) -> None:
        self._options = options
        self._connections = connections
        self._identities = identities
        self._shared = shared
        self._watches = watches
        self.has_verdicts: Final = shared is not None
        self.lists_for_all: Final = shared is not None or not identities.forwards

    def view_of(self, asker: Asker) -> View:
        """The principal for which the brokers are asked, or the one role for all."""
        if self._shared is not None:
            return SHARED
        with broker_failures(self._connections):
            return self._identities.principal_of(asker)

    async def list(
        self,
        view: View,
        namespace: NamespaceName,
        mode: Mode,
        known_hash: str | None,
        admit: Callable[[int], Awaitable[None]],
    ) -> StoreListing:
        """The topics of one domain, by GET_TOPICS_OF_NAMESPACE, or of all owners by the web service."""
        connections, identities = self._shared or (self._connections, self._identities)
        asker = _asker_of(view)
        with broker_failures(connections):
            async with asyncio.timeout(self._options.listing_timeout):
                if mode is Mode.NON_PERSISTENT and self._options.upstream.admin_url is not None:
                    return await self._of_owners(identities, identities.principal_of(asker), namespace)
                answer = await self._ask(
                    connections, asker, namespace, mode, topics_hash=known_hash, admit=admit
                )
                if not answer.changed:
                    return StoreListing(None, answer.topics_hash)
                large = answer.size > _LARGE
                if large:
                    await admit(answer.size)
                names = await in_thread(namespace, answer.column) if large else answer.column()
                return StoreListing(names, answer.topics_hash, answer.size)

    async def watch(self, view: View, namespace: NamespaceName, watcher: UpdateReceiver) -> bool:
        """Watch by WATCH_TOPIC_LIST until the connection is lost. Raises :exc:`ListingFailed`."""
        connections = self._watches
        if connections.connections >= self._options.connections // _WATCH_SHARE and not connections.has(
            _asker_of(view)
        ):
            return False

        async def ask(client: LookupSession) -> bool:
            return await client.watch(
                str(namespace), _ALL, _Updates(watcher), timeout=self._options.listing_timeout
            )

        with broker_failures(connections):
            return await connections.use(_asker_of(view), ask)

    async def allow(self, asker: Asker, namespace: NamespaceName) -> None:
        """Ask a broker in this client's name whether it may list, by a question without a result. Raises
        :exc:`ListingFailed`.
        """

        async def admit(_size: int) -> None:
            """Admit any size: brokers that evaluate no pattern send the non-persistent topics of one of them."""

        with broker_failures(self._connections):
            async with asyncio.timeout(self._options.listing_timeout):
                await self._ask(
                    self._connections,
                    asker,
                    namespace,
                    Mode.NON_PERSISTENT,
                    pattern=_NONE,
                    topics_hash=_EMPTY_HASH,
                    admit=admit,
                )

    async def _ask(
        self,
        connections: UpstreamConnections,
        asker: Asker,
        namespace: NamespaceName,
        mode: Mode,
        *,
        topics_hash: str | None,
        admit: Callable[[int], Awaitable[None]],
        pattern: str | None = None,
    ) -> TopicsAnswer:
        async def ask(client: LookupSession) -> TopicsAnswer:
            return await client.get_topics(
                str(namespace),
                mode,
                pattern,
                topics_hash,
                timeout=self._options.listing_timeout,
                admit=admit,
            )

        return await connections.use(asker, ask)

    async def _of_owners(
        self, identities: Identities, principal: Principal, namespace: NamespaceName
    ) -> StoreListing:
        service = web_service(self._options, identities.identity_of(principal), _MOST)
        try:
            names = await service.loaded_topics(str(namespace))
        finally:
            await service.close()
        return StoreListing(names, None, names.nbytes)


class _Updates:
    """A watcher of a store, to which a session reports changes."""

    def __init__(self, watcher: UpdateReceiver) -> None:
        self._watcher = watcher
        self.began = watcher.began

    @property
    def known_hash(self) -> str | None:
        return self._watcher.known_hash

    def update(self, message: CommandWatchTopicUpdate) -> None:
        self._watcher.update(
            TopicUpdate(tuple(message.new_topics), tuple(message.deleted_topics), message.topics_hash)
        )


def _asker_of(view: View) -> Asker:
    """A client of a view's principal."""
    if not isinstance(view, tuple):
        return Asker()
    role, original = view
    return Asker(role, original)
