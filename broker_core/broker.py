"""A broker: everything put together from the settings, started and stopped in order."""

from __future__ import annotations

import asyncio
import encodings.utf_16_le  # noqa: F401 - here, not on the event loop when the first pattern is measured
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import numpy.ma  # noqa: F401 - Arrow imports it with the first array, which would be on the event loop
import structlog

from broker_core import live_parts
from broker_core.access.asker import Asker
from broker_core.access.authentication import Authenticator
from broker_core.access.clients import Clients
from broker_core.access.sessions import Sessions
from broker_core.access.wide_settings import wide_settings
from broker_core.broker_handle import BrokerHandle
from broker_core.catalog import (
    AsyncCatalog,
    CatalogLister,
    CatalogLogReader,
    SqliteCatalog,
    show_catalog,
)
from broker_core.errors import BrokerCoreError
from broker_core.gateway import Gateway
from broker_core.live_settings import LiveSettings
from broker_core.memory.permits import Permits
from broker_core.metrics.event_loop_lag import watch_event_loop
from broker_core.metrics.metrics import Metrics
from broker_core.metrics.permit_metrics import show_permits
from broker_core.pipeline import Pipeline, PipelineOptions, Sight, open_sight
from broker_core.plugin_api.listing_result import DefaultLister
from broker_core.plugins import Dispatcher, PluginRegistry, show_plugins
from broker_core.quantities import ListenAddress
from broker_core.servers.admission import FileBudget, raise_file_limit
from broker_core.servers.arrival import TlsEntrance, tls_entrances
from broker_core.servers.http import (
    ApiAdmission,
    ApiServices,
    Checked,
    HttpMetrics,
    HttpServer,
    HttpServers,
    Readiness,
)
from broker_core.servers.pulsar import (
    CatalogLookups,
    LookupQuestions,
    LookupService,
    OwnAddress,
    PatternLookups,
    PulsarOptions,
    PulsarServer,
    RelayedLookups,
)
from broker_core.service import Admission, Changes, Find, ListingFeeds
from broker_core.settings import Settings
from broker_core.sighup_reloads import Reloads
from broker_core.snapshots import StoredSnapshots
from broker_core.watched_files import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker_core.servers.kafka import KafkaServer

__all__ = ["Broker", "ListenError", "opened_pipeline"]

#: Seconds in which snapshots are stored when the broker stops.
_STORING: Final = 5.0

_log = structlog.get_logger(__name__)


class ListenError(BrokerCoreError):
    """An address of ``[pulsar]`` cannot be listened on; the message names the setting."""


class Broker:
    """A server for its settings. ``plugins`` are plugins as objects by name, for tests and for programs that embed one:
    they are asked after those that the settings enable, or in their place where these name them. ``identify`` says who
    a connection is, by what is known of it; without it nobody has a role. Only the program that makes the broker can
    give it: no setting leads there, and nothing that a client sends. ``load`` reads the settings again, where their
    operator may change them while the broker runs, and ``check`` says what `broker-core check` says of them.

    :meth:`start` and :meth:`stop`, or ``async with``.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        plugins: Mapping[str, object] | None = None,
        identify: Callable[[Asker], Asker] | None = None,
        load: Callable[[], Settings] | None = None,
        check: Callable[[], Awaitable[Checked]] | None = None,
    ) -> None:
        self.live = LiveSettings(settings, load)
        #: What is read again while the broker runs, when its operator wishes so.
        self.reloads = Reloads(self.live)
        self._given = dict(plugins or {})
        self._identify = identify
        self._check = check
        self._readiness = Readiness.STARTING
        self._stack = AsyncExitStack()
        self._core: _Core | None = None
        self._server: PulsarServer | None = None
        self._http: HttpServer | None = None
        self._http_servers: HttpServers | None = None
        self._address: tuple[str, int] | None = None
        self._tls_address: tuple[str, int] | None = None
        self._kafka: KafkaServer | None = None
        self._kafka_address: tuple[str, int] | None = None
        self._kafka_tls_address: tuple[str, int] | None = None
        self._clients = Clients()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.live.current

    async def start(self) -> None:
        """Open everything and listen. What was opened is closed again where something fails."""
        from broker_core import __version__

        settings = self.settings
        try:
            raise_file_limit()
            for name, text in wide_settings(settings, identifies=bool(self._identify or self._given)):
                _log.warning(f"{name}: {text}")
            sight = await self._stack.enter_async_context(open_sight(self.live, self.reloads))
            core = self._core = await self._stack.enter_async_context(
                _opened(self.live, self._given, identifies=self._identify is not None, sight=sight)
            )
            self._stack.callback(asyncio.create_task(watch_event_loop(core.metrics), name="loop").cancel)
            entrances = await tls_entrances(settings, core.metrics, self.reloads, self._stack)
            files = FileBudget.of_process(
                upstream=0 if core.upstream is None else core.upstream.cluster.places.limit,
                api=settings.http.connections if settings.http is not None and settings.http.api else 0,
            )
            live_parts.warn_of_connections(settings, files)
            dispatcher = core.pipeline.dispatcher
            authenticator = await asyncio.to_thread(
                Authenticator,
                settings.authentication,
                dispatcher.authenticate if dispatcher.authenticates else None,
            )
            self._stack.callback(authenticator.close)
            live_parts.follow_authentication(self.live, self.reloads, authenticator, core.pipeline)
            admission = Admission(authenticator, core.metrics, core.sessions, settings.quotas)
            self._stack.callback(admission.close)
            self._stack.callback(asyncio.create_task(admission.live.watch(), name="revocations").cancel)
            self.live.add("quotas", admission.quotas.prepare)
            servers = self._http_servers = HttpServers(
                self._stack,
                self._api_services(core, files, admission),
                __version__,
                lambda: self._readiness,
                core.problem,
            )
            if settings.http is not None:
                self._http = await servers.start(
                    settings.http, files, admission, self._identify, entrances.get("http")
                )
            if settings.admin.socket is not None:
                await servers.start_operators(settings.admin.socket, self.reloads)
            self._server = PulsarServer(
                core.pipeline,
                core.lookups,
                core.permits,
                core.metrics,
                PulsarOptions.of(settings, files, __version__, lambda: core.gateway_version),
                identify=self._identify,
                admission=admission,
                tls=entrances.get("pulsar"),
                feeds=core.feeds,
                asked_patterns=core.lookups.asked,
                clients=self._clients,
            )
            live_parts.follow_limits(self.live, files, self._server, core.permits, core.fits)
            self._address = await _listen("pulsar.listen", settings.pulsar.listen, self._server.start)
            if settings.pulsar.tls is not None:
                listen = settings.pulsar.tls.listen
                self._tls_address = await _listen("pulsar.tls.listen", listen, self._server.start_tls)
            core.lookups.own.listens(self._address, self._tls_address)
            await self._start_kafka(core, files, admission, entrances.get("kafka"))
            live_parts.show_reloads(core.metrics, self.live, self.reloads)
            watched_files = WatchedFiles(self.reloads)
            self._stack.push_async_callback(watched_files.stop)
            await watched_files.start()
            await core.warm_up()
        except BaseException:
            await self.stop(0)
            raise
        self._readiness = Readiness.READY
        self.live.are_followed = True

    async def _start_kafka(
        self, core: _Core, files: FileBudget, admission: Admission, tls: TlsEntrance | None
    ) -> None:
        """Serve Kafka clients, where ``[kafka]`` is set; nothing of it is imported where it is not."""
        kafka = self.settings.kafka
        if kafka is None:
            return
        from broker_core.servers.kafka import kafka_server

        self._kafka = kafka_server(
            self.settings,
            core.pipeline,
            core.metrics,
            files,
            core.find,
            admission,
            changes=core.changes,
            tls=tls,
            identify=self._identify,
            clients=self._clients,
        )
        self._stack.callback(self._kafka.close)
        live_parts.follow_limits(self.live, files, self._kafka, core.permits, core.fits)
        live_parts.follow_kafka(self.live, self._kafka, admission, has_users=core.catalog is not None)
        self._kafka_address = await _listen("kafka.listen", kafka.listen, self._kafka.start)
        if kafka.tls is not None:
            self._kafka_tls_address = await _listen(
                "kafka.tls.listen", kafka.tls.listen, self._kafka.start_tls
            )

    def _api_services(self, core: _Core, files: FileBudget, admission: Admission) -> ApiServices:
        """What the operations of the HTTP API use."""
        return ApiServices(
            core.pipeline,
            core.permits,
            core.metrics,
            core.find,
            self.live,
            None if core.upstream is None else LookupQuestions(core.lookups),
            catalog=None if core.changes is None else core.changes.catalog,
            change_log=core.change_log,
            changes=core.changes,
            authenticator=admission.authenticator,
            admission=ApiAdmission(files.api),
            http_metrics=HttpMetrics(core.metrics),
            feeds=core.feeds,
            clients=self._clients,
            quotas=admission.quotas,
            check=self._check,
            cluster=core.upstream,
        )

    async def stop(self, drain: float = 0.0, *, delay: float = 0.0) -> None:
        """Let answers under way end for up to ``drain`` seconds, then close everything. May be called again.

        For ``delay`` seconds before, clients are accepted and answered as ever, and only ``/-/ready`` says otherwise.
        """
        self._readiness = Readiness.DRAINING
        server = self._server
        if server is not None:
            await asyncio.sleep(delay)
            self._server = None
            servers, kafka = self._http_servers, self._kafka
            self._kafka = None
            await asyncio.gather(
                server.stop(drain),
                *(() if servers is None else (servers.drain(drain),)),
                *(() if kafka is None else (kafka.stop(drain),)),
            )
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(self.settings.pulsar.drain_timeout if error is None else 0)

    @property
    def pulsar_address(self) -> tuple[str, int]:
        """Host and port where clients are served."""
        if self._address is None:
            raise RuntimeError("the broker is not listening")
        return self._address

    @property
    def pulsar_tls_address(self) -> tuple[str, int] | None:
        """Host and port where clients are served over TLS, ``None`` without ``[pulsar.tls]``."""
        return self._tls_address

    @property
    def kafka_address(self) -> tuple[str, int] | None:
        """Host and port where Kafka clients are served, ``None`` without ``[kafka]``."""
        return self._kafka_address

    @property
    def kafka_tls_address(self) -> tuple[str, int] | None:
        """The same over TLS, ``None`` without ``[kafka.tls]``."""
        return self._kafka_tls_address

    @property
    def https_address(self) -> tuple[str, int] | None:
        """Host and port of HTTP over TLS, ``None`` without ``[http.tls]``."""
        return None if self._http is None else self._http.tls_address

    @property
    def http_address(self) -> tuple[str, int] | None:
        """Host and port of HTTP, ``None`` without ``[http]``."""
        return None if self._http is None else self._http.address

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline, once started."""
        if self._core is None:
            raise RuntimeError("the broker is not started")
        return self._core.pipeline

    @property
    def catalog(self) -> SqliteCatalog | None:
        """The embedded catalogue, ``None`` before a cluster."""
        return None if self._core is None else self._core.catalog


async def _listen(
    setting: str, listen: ListenAddress, start: Callable[[str, int], Awaitable[tuple[str, int]]]
) -> tuple[str, int]:
    try:
        return await start(listen.host, listen.port)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ListenError(f"{setting}: cannot listen on {listen}: {reason}") from error


@dataclass(frozen=True, slots=True)
class _Core:
    """All but the sockets."""

    pipeline: Pipeline
    find: Find
    lookups: PatternLookups
    permits: Permits
    metrics: Metrics
    catalog: SqliteCatalog | None
    change_log: CatalogLogReader | None
    changes: Changes | None
    warm_up: Callable[[], Awaitable[None]]
    upstream: Gateway | None
    feeds: ListingFeeds
    #: Lets listings go that there is no room for any more.
    fits: Sequence[Callable[[], None]]

    @property
    def gateway_version(self) -> str | None:
        """What a gateway calls itself at its brokers."""
        return None if self.upstream is None else self.upstream.client_version

    def problem(self) -> str | None:
        """Why clients had better ask another server, where the settings want to know."""
        return None if self.upstream is None else self.upstream.problem

    @property
    def sessions(self) -> Sessions | None:
        """The credentials of clients, where brokers are given them."""
        return None if self.upstream is None else self.upstream.sessions


@asynccontextmanager
async def opened_pipeline(
    settings: Settings, *, plugins: Mapping[str, object] | None = None, create: bool = False
) -> AsyncIterator[Pipeline]:
    """The pipeline of a broker without its servers, as ``explain`` needs it.

    Without ``create``, a catalogue that is not there is a :exc:`~broker_core.catalog.CatalogUnusable`, and one of an
    earlier release is read as it is.
    """
    async with _opened(LiveSettings(settings), dict(plugins or {}), create=create) as core:
        yield core.pipeline


@asynccontextmanager
async def _opened(
    live: LiveSettings,
    given: Mapping[str, object],
    *,
    create: bool = True,
    identifies: bool = False,
    sight: Sight | None = None,
) -> AsyncIterator[_Core]:
    settings = live.current
    registry = PluginRegistry.load(settings.plugins.enabled, settings.plugins.tables, given=given)
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        dispatcher = Dispatcher(registry, on_call=metrics.plugin_call)
        permits = Permits(settings.limits)
        stack.callback(permits.close)
        guard = await live_parts.opened_guard(settings, metrics, stack, keeps=create)
        catalog: SqliteCatalog | None = None
        topics: AsyncCatalog | None = None
        change_log: CatalogLogReader | None = None
        lister: DefaultLister
        fits: list[Callable[[], None]] = []
        warm_up: Callable[[], Awaitable[None]] = partial(asyncio.sleep, 0)  # there is nothing to read
        upstream: Gateway | None = None
        if settings.upstream is not None:
            identifies = identifies or dispatcher.authenticates
            lister = upstream = Gateway(
                settings, metrics, permits, guard, identifies=identifies, keeps=create
            )
            stack.push_async_callback(upstream.stop)
            await upstream.start()
            fits.append(upstream.fit)
        else:
            catalog = await asyncio.to_thread(
                SqliteCatalog, settings.catalog.path, create=create, mode=settings.catalog.file_mode
            )
            if settings.kafka is not None:
                catalog.deletion_delay = settings.kafka.delete_topic_delay_ms
            stack.push_async_callback(asyncio.to_thread, catalog.close)
            if create and catalog.is_writable:  # one that can only be read is served as it is
                migrated = await asyncio.to_thread(catalog.migrate)
                if migrated is not None:
                    _log.warning(migrated.text)
            stored: StoredSnapshots | None = None
            keys, limit = settings.catalog.property_keys, settings.catalog.snapshots_bytes
            if create and settings.catalog.snapshots == "folder":
                stored = StoredSnapshots.beside(catalog.path, property_keys=keys, limit=limit)
            lister = of_catalog = CatalogLister(
                catalog,
                permits,
                property_keys=keys,
                on_ignored=metrics.ignored_properties,
                stored=stored,
                guard=guard,
            )
            fits.append(of_catalog.fit)
            stack.callback(of_catalog.close)
            stack.push_async_callback(of_catalog.store, _STORING)
            topics = AsyncCatalog(catalog, of_catalog)
            stack.push_async_callback(asyncio.to_thread, topics.close)
            show_catalog(metrics, of_catalog, stored)
            warm_up = partial(of_catalog.warm_up, settings.catalog.warm_within)
            change_log = CatalogLogReader(catalog)
            stack.callback(change_log.close)
        options = PipelineOptions(
            settings.patterns, selecting_keys=live_parts.selecting_keys(settings, registry)
        )
        pipeline = Pipeline(
            lister,
            dispatcher,
            permits,
            metrics,
            options,
            authorization=live_parts.rules_of(settings, dispatcher),
            sight=sight,
            guard=guard,
            change_log=change_log if upstream is None else upstream.log,
        )
        stack.callback(pipeline.close)
        feeds = ListingFeeds(pipeline, change_log, interval=settings.watchers.interval)
        stack.push_async_callback(feeds.stop)
        find = Find(pipeline, topics)
        lookups: LookupService = CatalogLookups(pipeline, find)
        if upstream is not None:
            upstream.cluster.on_change.append(pipeline.changes.announce)
            lookups = RelayedLookups(pipeline, find.plugins, upstream)
            live_parts.follow_upstream(live, upstream, pipeline, feeds)
        with_patterns = PatternLookups(pipeline, lookups, OwnAddress(settings.pulsar))
        show_permits(metrics, permits)
        show_plugins(metrics, dispatcher)
        stack.push_async_callback(dispatcher.shutdown)
        stack.callback(metrics.of_plugins.close)
        await dispatcher.startup(
            lambda plugin: BrokerHandle(pipeline, catalog, metrics.of_plugins.registry(plugin), plugin)
        )
        live.plugins = dispatcher
        changes: Changes | None = None
        if topics is not None:
            changes = Changes(topics, pipeline, over_http=settings.http is None or settings.http.writes)
            stack.callback(changes.imports.close)
        live_parts.follow_property_keys(live, pipeline, feeds)
        yield _Core(
            pipeline,
            find,
            with_patterns,
            permits,
            metrics,
            catalog,
            change_log,
            changes,
            warm_up,
            upstream,
            feeds,
            fits,
        )
