"""The broker: all parts made from the settings, started and stopped in order."""

from __future__ import annotations

import asyncio
import encodings.utf_16_le  # noqa: F401 - here, not on the event loop when the first pattern is measured
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import numpy.ma  # noqa: F401 - Arrow imports it with the first array, which would be on the event loop
import structlog

from broker_core.access import Asker, Authenticator, Clients, wide_settings
from broker_core.broker import apply_live_settings
from broker_core.broker.opened_core import Core, opened_core
from broker_core.catalog import SqliteCatalog
from broker_core.errors import BrokerCoreError
from broker_core.metrics import watch_event_loop
from broker_core.pipeline import Pipeline, open_event_sinks
from broker_core.reloads import LiveSettings, Reloads, WatchedFiles
from broker_core.servers.admission import ApiAdmission, FileBudget, raise_file_limit
from broker_core.servers.arrival import TlsEntrance, tls_entrances
from broker_core.servers.http import (
    ApiServices,
    CheckResult,
    HttpMetrics,
    HttpServers,
    Readiness,
)
from broker_core.servers.pulsar import PulsarOptions, PulsarServer
from broker_core.service import Admission, LookupQuestions
from broker_core.settings import Settings

if TYPE_CHECKING:
    from broker_core.servers.kafka import KafkaServer

__all__ = ["Broker", "ListenError"]

_log = structlog.get_logger(__name__)


class ListenError(BrokerCoreError):
    """Addresses cannot be listened on; the message names the setting of each."""


class ProtocolServer(apply_live_settings.Limited, Protocol):
    """The server of one protocol, with the addresses of one table of the settings."""

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 is a free one. Returns the address. Raises :exc:`OSError` if it is not free."""

    async def start_tls(self, host: str, port: int) -> tuple[str, int]:
        """Listen for clients over TLS besides; the server has been started."""

    async def stop(self, drain: float) -> None:
        """Let requests end for up to ``drain`` seconds."""


class Broker:
    """A server for its settings. ``plugins`` are plugins as objects by name, for tests and for programs that embed a
    broker: they are asked after the enabled plugins of the settings, or in the place that the settings give them by
    name. ``identify`` gives a connection its principal, from the facts about it; without it no connection has a role.
    Only the program that makes the broker can set it, not a setting or a client. ``load`` reads the settings again, if
    they may change while the broker runs, and ``check`` gives the results of `broker-core check` for them.

    :meth:`start` and :meth:`stop`, or ``async with``.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        plugins: Mapping[str, object] | None = None,
        identify: Callable[[Asker], Asker] | None = None,
        load: Callable[[], Settings] | None = None,
        check: Callable[[], Awaitable[CheckResult]] | None = None,
    ) -> None:
        self.live = LiveSettings(settings, load)
        #: The parts that are read again while the broker runs, at a reload.
        self.reloads = Reloads(self.live)
        self._given = dict(plugins or {})
        self._identify = identify
        self._check = check
        self._readiness = Readiness.STARTING
        self._stack = AsyncExitStack()
        self._core: Core | None = None
        self._http_servers: HttpServers | None = None
        self._servers: dict[str, ProtocolServer] = {}  # by the names of their tables
        self._addresses: dict[str, tuple[str, int]] = {}  # by the settings
        self._clients = Clients()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.live.current

    async def start(self) -> None:
        """Open everything and listen. If something fails, opened parts are closed again."""
        from broker_core import __version__

        settings = self.settings
        try:
            raise_file_limit()
            for name, text in wide_settings(settings, identifies=bool(self._identify or self._given)):
                _log.warning(f"{name}: {text}")
            unused = settings.pulsar.unused_max_listing
            if unused is not None:
                _log.warning(f"pulsar.max_listing: {unused}")
            sinks = await self._stack.enter_async_context(open_event_sinks(self.live, self.reloads))
            core = self._core = await self._stack.enter_async_context(
                opened_core(self.live, self._given, identifies=self._identify is not None, sinks=sinks)
            )
            self._stack.callback(asyncio.create_task(watch_event_loop(core.metrics), name="loop").cancel)
            entrances = await tls_entrances(settings, core.metrics, self.reloads, self._stack)
            files = FileBudget.of_process(
                upstream=core.upstream_connections,
                api=settings.http.connections if settings.http is not None and settings.http.api else 0,
            )
            apply_live_settings.warn_of_connections(settings, files)
            dispatcher = core.pipeline.dispatcher
            authenticator = await asyncio.to_thread(
                Authenticator,
                settings.authentication,
                dispatcher.authenticate if dispatcher.authenticates else None,
            )
            self._stack.callback(authenticator.close)
            apply_live_settings.follow_authentication(self.live, self.reloads, authenticator, core.pipeline)
            admission = Admission(authenticator, core.metrics, core.sessions, settings.quotas)
            self._stack.callback(admission.close)
            self._stack.callback(asyncio.create_task(admission.live.watch(), name="revocations").cancel)
            self.live.add("quotas", admission.quotas.prepare)
            http = self._http_servers = HttpServers(
                self._stack,
                self._api_services(core, files, admission),
                __version__,
                lambda: self._readiness,
                core.problem,
            )
            if settings.http is not None:
                self._servers["http"] = await http.for_clients(
                    settings.http, files, admission, self._identify, entrances.get("http")
                )
            if settings.admin.socket is not None:
                await http.start_operators(settings.admin.socket, self.reloads)
            self._servers["pulsar"] = PulsarServer(
                core.pipeline,
                core.lookups,
                core.permits,
                core.metrics,
                PulsarOptions.of(settings, files, __version__, lambda: core.gateway_version),
                identify=self._identify,
                admission=admission,
                tls=entrances.get("pulsar"),
                feeds=core.feeds,
                client_patterns=core.lookups.patterns,
                clients=self._clients,
            )
            if settings.kafka is not None:
                self._servers["kafka"] = self._kafka_server(core, files, admission, entrances.get("kafka"))
            servers = [*self._servers.values()]
            apply_live_settings.follow_limits(self.live, files, servers, core.permits, core.fits)
            await self._listen()
            core.lookups.own.listens(self.pulsar_address, self.pulsar_tls_address)
            apply_live_settings.show_reloads(core.metrics, self.live, self.reloads)
            watched_files = WatchedFiles(self.reloads)
            self._stack.push_async_callback(watched_files.stop)
            await watched_files.start()
            await core.warm_up()
        except BaseException:
            await self.stop(0)
            raise
        self._readiness = Readiness.READY
        self.live.are_followed = True

    def _kafka_server(
        self, core: Core, files: FileBudget, admission: Admission, tls: TlsEntrance | None
    ) -> KafkaServer:
        """The server of ``[kafka]``; nothing for it is imported without the table."""
        from broker_core.servers.kafka import kafka_server

        server = kafka_server(
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
            front=None if core.kafka is None else core.kafka.front,
            tables=None if core.kafka is None else core.kafka.plugin,
        )
        self._stack.callback(server.close)
        apply_live_settings.follow_kafka(self.live, server, admission, has_users=core.catalog is not None)
        return server

    async def _listen(self) -> None:
        """Listen at the addresses of all servers. Raises :exc:`ListenError` with each that is not free."""
        problems = []
        for name, server in self._servers.items():
            table = getattr(self.settings, name)
            starts = [(f"{name}.listen", table.listen, server.start)]
            if table.tls is not None:
                starts.append((f"{name}.tls.listen", table.tls.listen, server.start_tls))
            for setting, listen, start in starts:
                try:
                    self._addresses[setting] = await start(listen.host, listen.port)
                except OSError as error:
                    problems.append(f"{setting}: cannot listen on {listen}: {error.strerror or error}")
        if problems:
            raise ListenError("; ".join(problems))

    def _api_services(self, core: Core, files: FileBudget, admission: Admission) -> ApiServices:
        """The services that the operations of the HTTP API use."""
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

        For ``delay`` seconds before, clients are accepted and answered as usual, and only ``/-/ready`` reports the end.
        """
        self._readiness = Readiness.DRAINING
        if self._servers:
            await asyncio.sleep(delay)
            servers, self._servers = self._servers, {}
            await asyncio.gather(*(server.stop(drain) for server in servers.values()))
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
        """Host and port for Pulsar clients."""
        if "pulsar.listen" not in self._addresses:
            raise RuntimeError("the broker is not listening")
        return self._addresses["pulsar.listen"]

    @property
    def pulsar_tls_address(self) -> tuple[str, int] | None:
        """Host and port for Pulsar clients over TLS, ``None`` without ``[pulsar.tls]``."""
        return self._addresses.get("pulsar.tls.listen")

    @property
    def kafka_address(self) -> tuple[str, int] | None:
        """Host and port for Kafka clients, ``None`` without ``[kafka]``."""
        return self._addresses.get("kafka.listen")

    @property
    def kafka_tls_address(self) -> tuple[str, int] | None:
        """Host and port for Kafka clients over TLS, ``None`` without ``[kafka.tls]``."""
        return self._addresses.get("kafka.tls.listen")

    @property
    def https_address(self) -> tuple[str, int] | None:
        """Host and port of HTTP over TLS, ``None`` without ``[http.tls]``."""
        return self._addresses.get("http.tls.listen")

    @property
    def http_address(self) -> tuple[str, int] | None:
        """Host and port of HTTP, ``None`` without ``[http]``."""
        return self._addresses.get("http.listen")

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline, once started."""
        if self._core is None:
            raise RuntimeError("the broker is not started")
        return self._core.pipeline

    @property
    def catalog(self) -> SqliteCatalog | None:
        """The embedded catalogue, ``None`` for a gateway."""
        return None if self._core is None else self._core.catalog
