"""The parts of a broker without its servers: opened from the settings in order, and closed in the reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from broker_core.access import Sessions
from broker_core.broker import apply_live_settings
from broker_core.broker.broker_handle import BrokerHandle
from broker_core.broker.pulsar_gateway import Gateway
from broker_core.catalog import AsyncCatalog, CatalogLister, CatalogLogReader, SqliteCatalog, show_catalog
from broker_core.guards import ShrinkGuard
from broker_core.memory import Permits
from broker_core.metrics import Metrics, show_permits
from broker_core.pipeline import EventSinks, Pipeline, PipelineOptions
from broker_core.plugin_api import DefaultLister
from broker_core.plugins import Dispatcher, PluginRegistry, show_plugins
from broker_core.reloads import LiveSettings
from broker_core.servers.pulsar import CatalogLookups, OwnAddress, PatternLookups, RelayedLookups
from broker_core.service import Find, ListingFeeds, LookupService, TopicEditor
from broker_core.settings import Settings
from broker_core.snapshots import StoredSnapshots

if TYPE_CHECKING:
    from broker_core.broker.kafka_gateway import KafkaGateway

__all__ = ["Core", "opened_core", "opened_pipeline"]

#: Seconds in which snapshots are stored when the broker stops.
_STORING: Final = 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Core:
    """The parts of a broker except its sockets."""

    pipeline: Pipeline
    find: Find
    lookups: PatternLookups
    permits: Permits
    metrics: Metrics
    catalog: SqliteCatalog | None
    change_log: CatalogLogReader | None
    changes: TopicEditor | None
    warm_up: Callable[[], Awaitable[None]]
    upstream: Gateway | None
    kafka: KafkaGateway | None
    feeds: ListingFeeds
    #: Functions that drop listings that there is no room for any more.
    fits: Sequence[Callable[[], None]]

    @property
    def gateway_version(self) -> str | None:
        """The client version that a gateway sends to its brokers."""
        return None if self.upstream is None else self.upstream.client_version

    def problem(self) -> str | None:
        """The reason why clients should use another server, if ``ready`` is set in the settings."""
        return next((each.problem for each in self._gateways if each.problem), None)

    @property
    def upstream_connections(self) -> int:
        """The most connections to clusters behind this server."""
        brokers = 0 if self.upstream is None else self.upstream.cluster.places.limit
        return brokers + (0 if self.kafka is None else self.kafka.cluster.options.places)

    @property
    def sessions(self) -> Sessions | None:
        """The credentials of clients, if they are passed on to brokers."""
        return next((each.sessions for each in self._gateways if each.sessions is not None), None)

    @property
    def _gateways(self) -> list[Gateway | KafkaGateway]:
        return [each for each in (self.upstream, self.kafka) if each is not None]


@asynccontextmanager
async def opened_pipeline(
    settings: Settings, *, plugins: Mapping[str, object] | None = None, create: bool = False
) -> AsyncIterator[Pipeline]:
    """The pipeline of a broker without its servers, as ``explain`` needs it.

    Without ``create``, a missing catalogue is a :exc:`~broker_core.catalog.CatalogUnusable`, and one of an earlier
    release is read as it is.
    """
    async with opened_core(LiveSettings(settings), dict(plugins or {}), create=create) as core:
        yield core.pipeline


@asynccontextmanager
async def opened_core(
    live: LiveSettings,
    given: Mapping[str, object],
    *,
    create: bool = True,
    identifies: bool = False,
    sinks: EventSinks | None = None,
) -> AsyncIterator[Core]:
    settings = live.current
    async with AsyncExitStack() as stack:
        metrics = Metrics()
        permits = Permits(settings.limits)
        stack.callback(permits.close)
        guard = await apply_live_settings.opened_guard(settings, metrics, stack, keeps=create)
        sessions = Sessions()
        kafka = await _opened_kafka(settings, metrics, permits, guard, sessions, stack)
        if kafka is not None:
            given = {**given, kafka.plugin.lister: kafka.plugin}
        registry = PluginRegistry.load(settings.plugins.enabled, settings.plugins.tables, given=given)
        dispatcher = Dispatcher(registry, on_call=metrics.plugin_call)
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
                settings, metrics, permits, guard, sessions, identifies=identifies, keeps=create
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
            if create and catalog.is_writable:  # a read-only one is served as it is
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
        if kafka is not None and create:
            await kafka.check(lister)
        options = PipelineOptions(
            settings.patterns,
            selecting_keys=apply_live_settings.selecting_keys(settings, registry),
            guarded=None if kafka is None else kafka.plugin.lister,
        )
        pipeline = Pipeline(
            lister,
            dispatcher,
            permits,
            metrics,
            options,
            authorization=apply_live_settings.rules_of(settings, dispatcher),
            sinks=sinks,
            guard=guard,
            change_log=change_log if upstream is None else upstream.log,
        )
        stack.callback(pipeline.close)
        feeds = ListingFeeds(pipeline, change_log, interval=settings.watchers.interval)
        stack.push_async_callback(feeds.stop)
        find = Find(pipeline, topics)
        lookups: LookupService = CatalogLookups(pipeline, find)
        if kafka is not None:
            fits.append(kafka.fit)
            apply_live_settings.follow_upstream(live, "kafka.upstream", kafka, pipeline, feeds)
        if upstream is not None:
            upstream.cluster.on_change.append(pipeline.changes.announce)
            lookups = RelayedLookups(pipeline, find.plugins, upstream)
            apply_live_settings.follow_upstream(live, "upstream", upstream, pipeline, feeds)
        with_patterns = PatternLookups(pipeline, lookups, OwnAddress(settings.pulsar))
        show_permits(metrics, permits)
        show_plugins(metrics, dispatcher)
        stack.push_async_callback(dispatcher.shutdown)
        stack.callback(metrics.of_plugins.close)
        await dispatcher.startup(
            lambda plugin: BrokerHandle(pipeline, catalog, metrics.of_plugins.registry(plugin), plugin)
        )
        live.plugins = dispatcher
        changes: TopicEditor | None = None
        if topics is not None or kafka is not None:
            changes = TopicEditor(
                topics,
                pipeline,
                over_http=settings.http is None or settings.http.writes,
                elsewhere=None if kafka is None else kafka.edits(find),
            )
            if changes.imports is not None:
                stack.callback(changes.imports.close)
        apply_live_settings.follow_property_keys(live, pipeline, feeds)
        yield Core(
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
            kafka,
            feeds,
            fits,
        )


async def _opened_kafka(
    settings: Settings,
    metrics: Metrics,
    permits: Permits,
    guard: ShrinkGuard,
    sessions: Sessions,
    stack: AsyncExitStack,
) -> KafkaGateway | None:
    """The Kafka cluster of ``[kafka.upstream]``; nothing for it is imported if there is none."""
    if settings.kafka is None or settings.kafka.upstream is None:
        return None
    from broker_core.broker.kafka_gateway import KafkaGateway

    kafka = KafkaGateway(settings.kafka.upstream, metrics, permits, guard, sessions)
    stack.push_async_callback(kafka.stop)
    await kafka.start()
    return kafka
