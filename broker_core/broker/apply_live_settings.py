"""Changes of live settings in each part of a server: checked first, then put in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol

import structlog

from broker_core.access import Authenticator, Authorization
from broker_core.catalog import CatalogLister
from broker_core.guards import ShrinkGuard
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.plugins import Dispatcher, PluginRegistry
from broker_core.reloads import LiveSettings, Reloads
from broker_core.servers.admission import FileBudget
from broker_core.servers.http import ProtectedFromAll
from broker_core.service import Admission, ListingFeeds
from broker_core.settings import LimitsSettings, Settings

if TYPE_CHECKING:
    from broker_core.broker.kafka_gateway import KafkaGateway
    from broker_core.broker.pulsar_gateway import Gateway
    from broker_core.servers.kafka import KafkaServer

__all__ = [
    "follow_authentication",
    "follow_kafka",
    "follow_limits",
    "follow_property_keys",
    "follow_upstream",
    "opened_guard",
    "rules_of",
    "selecting_keys",
    "show_reloads",
    "warn_of_connections",
]

_log = structlog.get_logger(__name__)


async def opened_guard(
    settings: Settings, metrics: Metrics, stack: AsyncExitStack, *, keeps: bool
) -> ShrinkGuard:
    """The shrink guard, which ends with ``stack``; it keeps a file if it is set and ``keeps`` is true."""
    guard = ShrinkGuard(settings.shrink_guard)
    metrics.gauge("shrink_guard_held", "Listings that the shrink guard holds now.", lambda: len(guard.held()))
    metrics.read_counter(
        "shrink_guard_listings",
        "Listings that lost many topics at once, by what became of them.",
        lambda: dict(guard.counts),
        "event",
    )
    if keeps:
        stack.push_async_callback(guard.stop)
        await guard.start()
    return guard


def show_reloads(metrics: Metrics, live: LiveSettings, reloads: Reloads) -> None:
    """Declare the metrics of the last reload."""
    metrics.gauge(
        "reload_failing",
        "Whether the last reload of a part has failed, so that what it had before is in force.",
        lambda: {(name,): int(failing) for name, failing in reloads.failing.items()},
        "part",
    )
    metrics.gauge(
        "reload_awaiting_restart",
        "Settings of the file that was read last which are in force after a restart alone.",
        lambda: len(live.awaiting_restart),
    )


class Limited(Protocol):
    """A server whose limits can be changed while it runs."""

    def limit(self, limits: LimitsSettings, connections: int | None) -> None:
        """Set other limits, and at most ``connections``."""


def rules_of(settings: Settings, dispatcher: Dispatcher) -> Authorization:
    """The rules of the settings. Raises :exc:`~broker_core.access.authorization.AllowsEverybody`."""
    return Authorization(
        settings.authorization, authentication=settings.authentication.is_on or dispatcher.authenticates
    )


def selecting_keys(settings: Settings, registry: PluginRegistry) -> frozenset[str]:
    """The properties by which the catalogue, or a plugin, selects topics."""
    return frozenset(settings.catalog.property_keys) | registry.property_keys


def follow_authentication(
    live: LiveSettings,
    reloads: Reloads,
    authenticator: Authenticator,
    pipeline: Pipeline,
) -> None:
    """Apply changes of authentication, with files that are read again, and of the rules."""
    dispatcher = pipeline.dispatcher

    def read_files_again() -> None:
        if authenticator.enabled:
            reloads.add("authentication", authenticator.reload, lambda: authenticator.files)

    def prepare(settings: Settings) -> Callable[[], None]:
        is_on = settings.authentication.is_on or dispatcher.authenticates
        if settings.http is not None and settings.http.protect and not is_on:
            raise ProtectedFromAll("http.protect needs authentication, or no client could ask")
        others = authenticator.prepare(settings.authentication)

        def put_in_force() -> None:
            others()
            read_files_again()

        return put_in_force

    def prepare_rules(settings: Settings) -> Callable[[], None]:
        rules = rules_of(settings, dispatcher)

        def put_in_force() -> None:
            pipeline.authorization = rules

        return put_in_force

    read_files_again()
    reloads.on_reload.append(authenticator.look_again)  # the listeners have the authorities of clients
    live.add("authentication", prepare)
    live.add(("authorization", "authentication"), prepare_rules)


def warn_of_connections(settings: Settings, files: FileBudget) -> None:
    """Log if there is no room for as many connections as the settings allow."""
    connections = settings.limits.connections
    if connections != "auto" and connections > files.clients:
        _log.warning(
            "limits.connections is more than the limit of open files has room for: raise it (LimitNOFILE)",
            connections=connections,
            room=files.clients,
            open_files=files.limit,
        )


def follow_limits(
    live: LiveSettings,
    files: FileBudget,
    servers: Iterable[Limited],
    permits: Permits,
    fits: Iterable[Callable[[], None]],
) -> None:
    """Apply changes of the limits. ``fits`` drop listings that there is no room for any more."""

    def prepare(settings: Settings) -> Callable[[], None]:
        limits = settings.limits

        def put_in_force() -> None:
            warn_of_connections(settings, files)
            for server in servers:
                server.limit(limits, files.clients if limits.connections == "auto" else limits.connections)
            permits.resize(limits)
            for fit in fits:
                fit()

        return put_in_force

    live.add("limits", prepare)


def follow_property_keys(live: LiveSettings, pipeline: Pipeline, feeds: ListingFeeds) -> None:
    """Apply changes of the properties that select topics of the catalogue: former answers are forgotten."""
    lister = pipeline.lister

    def prepare(settings: Settings) -> Callable[[], None]:
        def put_in_force() -> None:
            pipeline.options.selecting_keys = selecting_keys(settings, pipeline.dispatcher.registry)
            if isinstance(lister, CatalogLister):
                lister.select_by(settings.catalog.property_keys)
            pipeline.changes.announce(None)
            feeds.ask_again()

        return put_in_force

    live.add("catalog.property_keys", prepare)


def follow_upstream(
    live: LiveSettings, table: str, cluster: Gateway | KafkaGateway, pipeline: Pipeline, feeds: ListingFeeds
) -> None:
    """Apply changes of the addresses and credentials in a cluster's table: former listings are not used again."""

    async def prepare(settings: Settings) -> Callable[[], None]:
        replace = await cluster.prepare(settings)

        def put_in_force() -> None:
            if replace is not None:
                replace()
                pipeline.changes.announce(None)
                feeds.ask_again()

        return put_in_force

    # The data about a client for brokers depends on whether clients have roles.
    live.add((table, "authentication"), prepare)


def follow_kafka(live: LiveSettings, server: KafkaServer, admission: Admission, *, has_users: bool) -> None:
    """Apply changes of ``[kafka]``, and of the settings of authentication that its mechanisms need."""

    def prepare(settings: Settings) -> Callable[[], None]:
        from broker_core.servers.kafka import check_mechanisms

        kafka = settings.kafka
        assert kafka is not None  # adding or removing the table needs a restart
        methods = settings.authentication.methods
        if kafka.upstream is None or kafka.upstream.forward == "gateway":  # or the cluster verifies
            check_mechanisms(
                kafka.sasl.mechanisms,
                lambda method: method in methods or admission.authenticator.asks_plugins,
                has_users=has_users,
            )
        return server.prepare(kafka)

    live.add(("kafka", "authentication"), prepare)
