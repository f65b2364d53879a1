"""A server of Pulsar's protocol without a catalogue, and a check that it released everything."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from structlog.testing import capture_logs

from broker_core.access.authentication import Authenticator
from broker_core.access.connection_credentials import Sessions
from broker_core.memory.permits import DIRECT_RESERVE, Permits
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline import Pipeline, PipelineOptions
from broker_core.plugins import Dispatcher, PluginRegistry
from broker_core.servers.arrival import ServerCertificate, TlsEntrance, TlsMetrics
from broker_core.servers.connection import ClientConnection
from broker_core.servers.pulsar import PulsarOptions, PulsarServer
from broker_core.servers.pulsar.catalog_lookups import CatalogLookups
from broker_core.service import Admission, FailurePace, Find, LookupService
from broker_core.settings import AuthenticationSettings, LimitsSettings
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.raw_client import RawClient
from tests.support.tls_client import TlsClient

__all__ = ["Serving", "serving"]

_Client = TypeVar("_Client", bound=RawClient)


@dataclass
class Serving:
    """The parts of a running server. ``logs`` are the events of structlog so far."""

    server: PulsarServer
    pipeline: Pipeline
    permits: Permits
    dispatcher: Dispatcher
    metrics: Metrics
    lister: Any
    address: tuple[str, int]
    tls_address: tuple[str, int] | None
    logs: list[Any]
    admission: Admission
    clients: list[RawClient] = field(default_factory=list)

    async def client(self, **options: Any) -> RawClient:
        """A connected client; it is closed at the end, if not earlier."""
        return self.closed_at_end(await RawClient.open(self.address, **options))

    async def tls_client(self, context: ssl.SSLContext, **options: Any) -> TlsClient:
        """A client over TLS."""
        assert self.tls_address is not None
        return self.closed_at_end(await TlsClient.open_tls(self.tls_address, context, **options))

    def closed_at_end(self, client: _Client) -> _Client:
        """Close this client at the end, if it is not closed earlier."""
        self.clients.append(client)
        return client

    def keep_alive(self) -> None:
        """What happens on all connections each time that the interval of the keep-alive is over."""
        for connection in list(self.server.load.connections):
            assert isinstance(connection, ClientConnection)
            connection._tick()

    def sample(self, name: str, **labels: str) -> float:
        """The value of a metric."""
        return self.metrics.registry.get_sample_value(f"broker_core_{name}", labels) or 0.0

    def assert_nothing_held(self) -> None:
        """No request holds anything: no permit, no slot, no place in a queue, no task, no buffer."""
        permits, server = self.permits, self.server
        held = {
            "heap": permits.heap.acquired,
            "heap queue": permits.heap.queue_size,
            "direct": permits.direct.acquired,
            "direct queue": permits.direct.queue_size,
            "reserve": permits.reserve.acquired,
            "reserve queue": permits.reserve.queue_size,
            "slots": server.load.slots.taken,
            "tasks": len(server.load.request_tasks),
            "buffered": server.load.buffered_bytes,
        }
        assert not any(held.values()), held

    async def nothing_held(self) -> None:
        """Wait for that."""

        def nothing() -> bool:
            self.assert_nothing_held()
            return True

        await eventually(nothing)


def _patient(options: PulsarOptions) -> PulsarOptions:
    """Without PING, and without an end for a client that does not read: on a slow machine both would come within a
    test, and a client that does not answer the first PING is gone at the second.
    """
    times = {
        name: AGES for name in ("keep_alive", "write_timeout") if name not in options.pulsar.model_fields_set
    }
    return replace(options, pulsar=options.pulsar.model_copy(update=times))


@asynccontextmanager
async def serving(
    lister: Any = None,
    plugins: Mapping[str, object] | None = None,
    *,
    tables: Mapping[str, Mapping[str, object]] | None = None,
    limits: LimitsSettings | None = None,
    direct_reserve: int = DIRECT_RESERVE,
    options: PulsarOptions | None = None,
    pipeline_options: PipelineOptions | None = None,
    lookups: LookupService | None = None,
    internal_errors: bool = False,
    send_buffer: int | None = None,
    authenticator: Authenticator | None = None,
    sessions: Sessions | None = None,
    tls: ServerCertificate | None = None,
) -> AsyncIterator[Serving]:
    """Serve on a free port of the loopback; at the end everything must have been given back, and nothing gone wrong.

    ``internal_errors`` says that the test means some. ``send_buffer`` is how many bytes the kernel takes for a client
    that does not read; by itself it may take megabytes. With ``tls``, clients are served over TLS as well.
    No PING comes by itself, and no client is closed that does not read, unless ``options`` say when.
    """
    loop = asyncio.get_running_loop()
    unhandled: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    with capture_logs() as logs:
        lister = MemoryLister() if lister is None else lister
        metrics, permits = Metrics(), Permits(limits, direct_reserve=direct_reserve)
        registry = PluginRegistry.load(tables=tables, given=plugins or {})
        dispatcher = Dispatcher(registry, on_call=metrics.plugin_call)
        pipeline = Pipeline(lister, dispatcher, permits, metrics, pipeline_options)
        pace = FailurePace()
        entrance = None if tls is None else TlsEntrance("pulsar", tls, TlsMetrics(metrics, ("pulsar",)), pace)
        authenticator = authenticator or Authenticator(AuthenticationSettings())
        admission = Admission(authenticator, metrics, sessions)
        server = PulsarServer(
            pipeline,
            lookups or CatalogLookups(pipeline, Find(pipeline, None)),
            permits,
            metrics,
            _patient(options or PulsarOptions()),
            admission=admission,
            tls=entrance,
        )
        await dispatcher.startup()
        address = await server.start("127.0.0.1", 0)
        tls_address = None if tls is None else await server.start_tls("127.0.0.1", 0)
        if send_buffer is not None:
            for listening in server._arrivals.sockets:
                # What it accepts has the same.
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        held = Serving(
            server, pipeline, permits, dispatcher, metrics, lister, address, tls_address, logs, admission
        )
        try:
            yield held
            await held.nothing_held()
        finally:
            for client in held.clients:
                client.close()
            await server.stop(0)
            admission.close()
            await dispatcher.shutdown()
            pipeline.close()
            if authenticator is not None:
                authenticator.close()
        held.assert_nothing_held()
        assert server.connections == 0
        permits.close()
    assert not unhandled, unhandled
    if not internal_errors:
        errors = [event for event in logs if event["log_level"] in ("error", "critical")]
        assert not errors, errors
