"""The cluster behind a gateway, by the settings in force; another one may replace it while the server runs."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from broker_core.access import Asker, Sessions
from broker_core.change_log import CatalogVersion, ChangeLog, Changes, Gap
from broker_core.client import default_client_version
from broker_core.concurrency import ended_within
from broker_core.errors import Cause, ListingFailed
from broker_core.guards import ShrinkGuard
from broker_core.listing import Listing
from broker_core.memory import Keep, Permits
from broker_core.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api import DescribeRequest, ListerNotes, ListingRequest, TopicListingResult
from broker_core.servers.admission import FileBudget
from broker_core.service_addresses import Address
from broker_core.settings import Settings, UpstreamSettings
from broker_core.snapshots import StoredSnapshots
from broker_core.upstream.pulsar import (
    KnownNamespaces,
    UpstreamCluster,
    UpstreamOptions,
    gateway_mark,
    show_upstream,
)
from broker_core.upstream.snapshots import SnapshotLog
from broker_core.wire.pulsar import BaseCommand, FeatureFlags

__all__ = ["Gateway"]

#: Connections to the brokers at once, for all principals.
_CONNECTIONS: Final = 256
#: Seconds that requests to a former cluster have to end: more than any request waits.
_DRAIN: Final = 60.0

_log = structlog.get_logger(__name__)


class Gateway:
    """Lists and relays at the cluster of the settings in force. ``identifies``: clients have roles, whatever the
    settings of authentication. ``sessions`` has the credentials of clients if they are passed on. If it ``keeps``
    listings, they are stored for the next start as set.

    With other addresses or credentials another :class:`UpstreamCluster` replaces the former one. It gets all further
    requests, and listings of the former are not used any more; requests that the former has already end there, over its
    connections, which are closed then. Both share places and counts.
    """

    name: Final = "upstream"

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        permits: Permits,
        guard: ShrinkGuard,
        sessions: Sessions,
        *,
        identifies: bool,
        keeps: bool = True,
    ) -> None:
        assert settings.upstream is not None
        forwarded = settings.upstream
        passes_on = forwarded.forward == "client" or forwarded.original_auth_data
        self.sessions: Final = sessions if passes_on else None
        self._always_identifies = identifies
        self._identifies = self._identify(settings)
        self._metrics = metrics
        self._permits = permits
        self._guard = guard
        self._stored: StoredSnapshots | None = None
        folder, limit = forwarded.snapshots.folder, forwarded.snapshots.folder_bytes
        if keeps and folder is not None and forwarded.snapshots.mode == "auto":
            self._stored = StoredSnapshots.of_cluster(folder, limit=limit)
            self._stored.counts.show(metrics)
        self.cluster = UpstreamCluster(
            UpstreamOptions(
                forwarded,
                settings.pulsar,
                connections=FileBudget.upstream_share(_CONNECTIONS),
                client_version=_client_version(forwarded),
            ),
            metrics,
            sessions=self.sessions,
            identifies=self._identifies,
            permits=permits,
            guard=guard,
            stored=self._stored,
        )
        #: How many requests each cluster has now, and the event that is set once it has none.
        self._requests: dict[UpstreamCluster, int] = {self.cluster: 0}
        self._idle: dict[UpstreamCluster, asyncio.Event] = {}
        self._changing: set[asyncio.Task[None]] = set()
        show_upstream(metrics, lambda: self.cluster)

    async def start(self) -> None:
        """Connect. Raises :exc:`~broker_core.upstream.pulsar.UpstreamUnusable`."""
        await self.cluster.start()

    async def stop(self) -> None:
        """Stop all clusters; running requests fail."""
        for task in self._changing:
            task.cancel()
        await asyncio.gather(*self._changing, return_exceptions=True)
        for cluster in list(self._requests):
            await cluster.stop()

    # -- other settings

    async def prepare(self, settings: Settings) -> Callable[[], None] | None:
        """A function that puts other settings in force; ``None`` if they change nothing here.

        It connects to the brokers: raises :exc:`~broker_core.upstream.pulsar.UpstreamUnusable` if none accepts the
        gateway. Brokers that do not answer are no error: they may be down.
        """
        assert settings.upstream is not None
        former = self.cluster.options
        options = replace(
            former, upstream=settings.upstream, client_version=_client_version(settings.upstream)
        )
        identifies = self._identify(settings)
        if (options, identifies) == (former, self._identifies):
            return None
        answering = await UpstreamCluster(options, sessions=self.sessions, identifies=identifies).checked()

        def put_in_force() -> None:
            self._identifies = identifies
            self._replace(options, answering)

        return put_in_force

    def _replace(self, options: UpstreamOptions, answering: list[Address]) -> None:
        former = self.cluster
        self.cluster = UpstreamCluster(
            options,
            self._metrics,
            sessions=self.sessions,
            identifies=self._identifies,
            permits=self._permits,
            guard=self._guard,
            stored=self._stored,
            former=former,
        )
        self._requests[self.cluster] = 0
        for address in answering:
            self.cluster.health.succeeded(address)
        for work in (self.cluster.start(0), self._end(former)):
            task = asyncio.get_running_loop().create_task(work)
            self._changing.add(task)
            task.add_done_callback(self._changing.discard)
            task.add_done_callback(_log_failure)

    async def _end(self, former: UpstreamCluster) -> None:
        """Close a cluster once its requests are answered."""
        await former.retire()
        idle = self._idle[former] = asyncio.Event()
        if self._requests[former] and not await ended_within(_DRAIN, idle.wait()):
            _log.warning("requests to the former brokers are given up", requests=self._requests[former])
        del self._idle[former]
        await former.stop()
        del self._requests[former]

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[UpstreamCluster]:
        """The current cluster, which is not closed meanwhile."""
        cluster = self.cluster
        self._requests[cluster] += 1
        try:
            yield cluster
        finally:
            if cluster in self._requests:  # or it was given up
                self._requests[cluster] -= 1
                if not self._requests[cluster] and cluster in self._idle:
                    self._idle[cluster].set()

    def _identify(self, settings: Settings) -> bool:
        return self._always_identifies or settings.authentication.is_on

    @property
    def problem(self) -> str | None:
        """The reason why clients should use another server, if ``ready`` is set in the settings."""
        return self.cluster.problem if self.cluster.options.upstream.ready else None

    @property
    def client_version(self) -> str | None:
        """The client version that it sends to its brokers."""
        return self.cluster.options.client_version

    def fit(self) -> None:
        """Drop listings that there is no room for any more."""
        for cluster in self._requests:
            if cluster.snapshots is not None:
                cluster.snapshots.snapshots.fit()

    # -- lookups

    @property
    def feature_flags(self) -> FeatureFlags:
        return self.cluster.relay.feature_flags

    async def answer(self, command: BaseCommand, asker: Asker, keep: Keep | None = None, /) -> bytes:
        async with self.in_use() as cluster:
            return await cluster.relay.answer(command, asker, keep)

    # -- listings

    @property
    def depends_on(self) -> frozenset[str]:
        return self.cluster.lister.depends_on

    def list_now(
        self, request: ListingRequest, applied: TopicsPattern | None = None
    ) -> TopicListingResult | None:
        return self.cluster.lister.list_now(request, applied)

    def still_valid(
        self, request: ListingRequest, applied: TopicsPattern | None, listing: weakref.ref[Listing]
    ) -> Listing | None:
        return self.cluster.lister.still_valid(request, applied, listing)

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        async with self.in_use() as cluster:
            return await cluster.lister.list_topics(request)

    def place(self, namespace: NamespaceName, asker: Asker) -> Hashable | None:
        return self.cluster.lister.place(namespace, asker)

    def follow(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> Callable[[], None]:
        return self.cluster.lister.follow(namespace, mode, asker)

    def is_up_to_date(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> bool:
        return self.cluster.lister.is_up_to_date(namespace, mode, asker)

    def period(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> float | None:
        return self.cluster.lister.period(namespace, mode, asker)

    def gave(self, namespace: NamespaceName, topics_hash: str) -> None:
        self.cluster.lister.gave(namespace, topics_hash)

    async def catch_up(self, request: ListingRequest) -> None:
        await self.cluster.lister.catch_up(request)

    def notes(self, request: ListingRequest) -> ListerNotes:
        return self.cluster.lister.notes(request)

    async def describe(self, request: DescribeRequest) -> None:
        await self.cluster.lister.describe(request)

    # -- changes

    async def namespaces(self, asker: Asker) -> KnownNamespaces:
        """The known namespaces for a client. Raises :exc:`~broker_core.errors.ListingFailed`."""
        async with self.in_use() as cluster:
            return await cluster.namespaces(asker)

    @property
    def logs(self) -> Callable[[Asker, NamespaceName], Awaitable[ChangeLog]] | None:
        """A function to the change log for a client and a namespace; ``None`` if changes are not known."""
        return None if self.cluster.snapshots is None else self._log_of

    @property
    def log(self) -> ChangeLog | None:
        """The change log of listings for all clients; ``None`` if nothing is held, or listings depend on the asker."""
        return None if self.cluster.log is None else _ClusterLog(self, _for_all)

    async def _log_of(self, asker: Asker, namespace: NamespaceName) -> ChangeLog:
        """The change log of the listings for a client that may list a namespace, if the cluster is followed.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        async with self.in_use() as cluster:
            assert cluster.snapshots is not None
            await cluster.snapshots.allow(asker, namespace)
        return _ClusterLog(self, partial(_for_client, asker))


class _ClusterLog:
    """A change log of the current cluster. Versions of a former one have another id, so that there is a gap."""

    name: Final = "upstream"

    def __init__(self, gateway: Gateway, of: Callable[[UpstreamCluster], SnapshotLog]) -> None:
        self._gateway = gateway
        self._of = of

    async def catalog_id(self) -> str:
        return await self._of(self._gateway.cluster).catalog_id()

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:
        return self._of(self._gateway.cluster).version_now(namespace)

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        async with self._gateway.in_use() as cluster:
            return await self._of(cluster).version(namespace)

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        async with self._gateway.in_use() as cluster:
            return await self._of(cluster).changes(namespace, since)


def _for_all(cluster: UpstreamCluster) -> SnapshotLog:
    if cluster.log is None:
        raise ListingFailed("The cluster's listings depend on the client", cause=Cause.UPSTREAM)
    return cluster.log


def _for_client(asker: Asker, cluster: UpstreamCluster) -> SnapshotLog:
    assert cluster.snapshots is not None
    return cluster.snapshots.log_of(asker)


def _client_version(upstream: UpstreamSettings) -> str:
    return f"{default_client_version()}+{gateway_mark(upstream.service_url)}"


def _log_failure(task: asyncio.Task[None]) -> None:
    """Log an error of a task: brokers may turn out to be unusable only when they answer at last."""
    if not task.cancelled() and (failed := task.exception()) is not None:
        _log.error("the brokers cannot be used", reason=str(failed))
