"""The cluster behind this server as one object: its connections, its lister, its relay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from broker_core.access import Asker, Sessions
from broker_core.client import (
    CredentialsFailed,
    HandshakeRefused,
    ServiceUrl,
    TlsFailed,
)
from broker_core.client.failover import ConnectionPlaces
from broker_core.errors import BrokerCoreError
from broker_core.guards import ShrinkGuard
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.names import NamespaceName
from broker_core.plugin_api import DefaultLister
from broker_core.service_addresses import Address
from broker_core.settings import ShrinkGuardSettings
from broker_core.snapshots import StoredSnapshots
from broker_core.upstream.pulsar.address_watch import AddressWatch, probe
from broker_core.upstream.pulsar.broker_credentials import Identities, own_token
from broker_core.upstream.pulsar.broker_health import BrokerHealth
from broker_core.upstream.pulsar.cluster_store import ClusterStore
from broker_core.upstream.pulsar.connector import Connector, IsProxy
from broker_core.upstream.pulsar.gateway_options import UpstreamOptions
from broker_core.upstream.pulsar.lookup_relay import LookupRelay
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections
from broker_core.upstream.pulsar.upstream_lister import UpstreamLister
from broker_core.upstream.pulsar.web_service import ClusterNamespaces, KnownNamespaces
from broker_core.upstream.snapshots import LiveSnapshots, SnapshotLister, SnapshotLog
from broker_core.wire.pulsar import CommandConnected

__all__ = ["UpstreamCluster", "UpstreamUnusable"]

_MAX_LOOKUP_ANSWER: Final = (
    16 * 1024 * 1024
)  # bytes; a schema is the largest of them, and fits into a message
_SWEEP: Final = 2.0  # seconds between two looks for connections that nobody needs any more
_WATCHES_ON_ONE: Final = 1000  # namespaces that are watched over one connection
_LOOKUPS_IN_FLIGHT: Final = 256  # over one connection, before another is opened

_log = structlog.get_logger(__name__)


class UpstreamUnusable(BrokerCoreError):
    """The service URL does not lead to brokers; the message says to what."""


class UpstreamCluster:
    """A cluster with connections for lookups and others for listings: one of 65 MB must not make a lookup wait.

    With ``permits`` it holds snapshots of namespaces, if the settings say so, and calls ``on_change`` with each
    namespace whose listing has changed; large ones are ``stored`` for the next start. Listings that lose many topics at
    once are held by ``guard``. ``sessions`` has the credentials of clients if they are passed on; ``identifies`` says
    whether clients have roles. It goes on with the places and the counts of a ``former`` one, whose place it takes.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        metrics: Metrics | None = None,
        *,
        sessions: Sessions | None = None,
        identifies: bool = False,
        permits: Permits | None = None,
        guard: ShrinkGuard | None = None,
        stored: StoredSnapshots | None = None,
        former: UpstreamCluster | None = None,
    ) -> None:
        service = ServiceUrl.parse(options.upstream.service_url)
        self.options = options
        self._warned: set[str] = set()
        self._guard = guard or ShrinkGuard(ShrinkGuardSettings())
        #: The role that lists for all clients.
        self._role: Identities | None = None
        if options.upstream.snapshots.has_own_role:
            of_role = options.upstream.of_snapshot_role
            own = own_token(of_role, "upstream.snapshots")
            self._role = Identities(of_role, None, identifies=False, own=own)
        self.health = BrokerHealth(
            service.addresses, first_backoff=options.first_backoff, longest_backoff=options.longest_backoff
        )
        self.connector = Connector(options, on_connected=self._connected, on_ended=self._ended)
        self.places: ConnectionPlaces = (
            ConnectionPlaces(options.connections) if former is None else former.places
        )
        self.identities = Identities(
            options.upstream, sessions, identifies=identifies, own=own_token(options.upstream)
        )
        self.watch = AddressWatch(
            options, self.health, self.connector, self.identities, is_tls=service.is_tls
        )
        self._every: list[UpstreamConnections] = []
        self.lookups = self._connections(
            self.identities, options.lookup_connections, busy=_LOOKUPS_IN_FLIGHT, max_frame=_MAX_LOOKUP_ANSWER
        )
        self.listings = self._connections(self.identities, options.listing_connections, busy=1)
        self._sweeping: asyncio.Task[None] | None = None
        self.relay: LookupRelay = LookupRelay(
            self.lookups,
            options,
            metrics or Metrics(),
            (permits or Permits()).heap,
            None if former is None else former.relay,
        )
        self.on_change: list[Callable[[NamespaceName], None]] = [] if former is None else former.on_change
        self.snapshots: SnapshotLister | None = None
        self._namespaces = ClusterNamespaces(options, self.identities, self.listings)
        self.lister: DefaultLister = UpstreamLister(self.listings, options, self._guard)
        upstream = options.upstream
        if (
            permits is not None
            and upstream.snapshots.mode == "auto"
            and "principal" not in upstream.listing_depends_on
        ):
            self.lister = self.snapshots = self._snapshot_lister(permits, stored)
        if former is not None:
            self._count_on(former)

    def _count_on(self, former: UpstreamCluster) -> None:
        self.connector.counts = former.connector.counts
        self.lookups.closed, self.listings.closed = former.lookups.closed, former.listings.closed
        mine, theirs = self.snapshots, former.snapshots
        if mine is not None and theirs is not None:
            mine.snapshots.counts, mine.watches.counts = theirs.snapshots.counts, theirs.watches.counts
            mine.verdicts = theirs.verdicts

    def _connections(
        self, identities: Identities, size: int, *, busy: int, max_frame: int | None = None
    ) -> UpstreamConnections:
        made = UpstreamConnections(
            self.options,
            identities,
            self.health,
            self.connector,
            self.places,
            size=size,
            busy=busy,
            max_frame=max_frame,
        )
        self._every.append(made)
        return made

    def _changed(self, namespace: NamespaceName) -> None:
        for hook in self.on_change:
            hook(namespace)

    def _snapshot_lister(self, permits: Permits, stored: StoredSnapshots | None) -> SnapshotLister:
        options, upstream = self.options, self.options.upstream
        shared: tuple[UpstreamConnections, Identities] | None = None
        identities = self.identities
        if self._role is not None:
            identities = self._role
            shared = self._connections(identities, options.listing_connections, busy=1), identities
        watches = self._connections(identities, 1, busy=_WATCHES_ON_ONE)
        store = ClusterStore(options, self.listings, self.identities, shared, watches=watches)
        return SnapshotLister(
            store,
            LiveSnapshots(
                store,
                permits,
                self._changed,
                places=options.listings,
                guard=self._guard,
                stored=None if stored is None else (stored, upstream.service_url),
            ),
            self.lister,
            max_age=upstream.snapshots.max_age,
            depends_on=frozenset(upstream.listing_depends_on),
            is_partial=upstream.admin_url is None,
        )

    async def start(self, wait: float = 2.0) -> None:
        """Begin to watch the brokers, and wait at most ``wait`` seconds until each was tried; the cluster may well be
        down. Raises :exc:`UpstreamUnusable` if a pulsar-proxy answers.
        """
        warning = self.options.upstream.token_warning
        if warning is not None:
            _log.warning(f"upstream.token: {warning}")
        await self.watch.start(wait)
        if self.watch.proxy is not None:
            await self.stop()
            raise UpstreamUnusable(str(self.watch.proxy))
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep())

    async def checked(self, wait: float = 1.5) -> list[Address]:
        """The addresses at which brokers answer within ``wait`` seconds, asked as this gateway; it is not started.

        Raises :exc:`UpstreamUnusable` if there are none, because one does not accept the gateway.
        """

        async def of_role(address: Address, role: Identities) -> None:
            client = await self.connector.connect(address, role.of_gateway(), is_tls=self.lookups.is_tls)
            await client.close()

        async def refusal(address: Address) -> str | None:
            try:
                await self.probe(address)
                if self._role is not None:
                    await of_role(address, self._role)
            except (IsProxy, HandshakeRefused, CredentialsFailed, TlsFailed) as failed:
                return str(failed)
            return None

        addresses = self.health.addresses
        tasks = [asyncio.create_task(refusal(address)) for address in addresses]
        await asyncio.wait(tasks, timeout=wait)
        for task in tasks:
            task.cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        await self.stop()
        wrong = [each for each in found if isinstance(each, str)]
        answering = [address for address, each in zip(addresses, found, strict=True) if each is None]
        if wrong and not answering:
            raise UpstreamUnusable(f"upstream: {wrong[0]}")
        return answering

    async def retire(self) -> None:
        """Begin nothing new: requests under way are the last."""
        await self.watch.stop()
        if self.snapshots is not None:
            await self.snapshots.watches.close()

    async def stop(self) -> None:
        """Close all connections; requests on them fail."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self.watch.stop()
        if self.snapshots is not None:
            await self.snapshots.close()
        await self._namespaces.stop()
        for connections in self._every:
            await connections.stop()
        if self._role is not None:
            await self._role.stop()
        await self.identities.stop()

    @property
    def log(self) -> SnapshotLog | None:
        """The change log of the held listings; ``None`` if there are none, or others for each principal."""
        return None if self.snapshots is None else self.snapshots.log

    async def namespaces(self, asker: Asker) -> KnownNamespaces:
        """The known namespaces of a client: all, if the brokers' web service can be asked, or those in memory.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        if self.options.upstream.admin_url is not None:
            return KnownNamespaces(await self._namespaces.names(asker), complete=True)
        found = [] if self.snapshots is None else await self.snapshots.namespaces(asker)
        return KnownNamespaces(found, complete=False)

    async def probe(self, address: Address) -> None:
        """Ask one broker for a connection as this gateway. Raises :exc:`~broker_core.client.ClientError`."""
        client = await probe(address, self.connector, self.identities, is_tls=self.lookups.is_tls)
        if client is not None:
            await client.close()

    @property
    def problem(self) -> str | None:
        """The reason why no broker answers; ``None`` if one does."""
        return self.health.problem

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP)
            for connections in self._every:
                connections.sweep()

    def _ended(self, server: CommandConnected) -> None:
        self.relay.ended(server)

    def _connected(self, server: CommandConnected) -> None:
        """Warn once of each thing that an operator must change at the brokers."""
        self.relay.connected(server)
        service_url = self.options.upstream.service_url
        theirs = server.max_message_size
        if theirs != self.options.pulsar.max_message_size and "max_message_size" not in self._warned:
            self._warned.add("max_message_size")
            _log.warning(
                "the brokers have another max_message_size, and clients take it from the server that they asked last: "
                "set pulsar.max_message_size to theirs",
                service_url=service_url,
                theirs=theirs,
                ours=self.options.pulsar.max_message_size,
            )
