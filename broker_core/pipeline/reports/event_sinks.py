"""Sinks for listing events besides the metrics, as the operator wishes: the access log and traces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_core.errors import BrokerCoreError
from broker_core.logs import AccessLog
from broker_core.reloads import LiveSettings, Reloads
from broker_core.settings import Settings, TracingSettings

if TYPE_CHECKING:
    from broker_core.tracing import Tracing

__all__ = ["EventSinks", "TracingUnavailable", "open_event_sinks", "open_tracing"]

#: Seconds in which the last lines of the access log are written.
_LAST_LINES: Final = 1.0
#: Seconds in which the last spans are sent.
_LAST_SPANS: Final = 2.0


class TracingUnavailable(BrokerCoreError):
    """The libraries of OpenTelemetry are not installed."""


@dataclass(frozen=True, slots=True)
class EventSinks:
    """The sinks of the settings; false if there is none, which is the default."""

    access_log: AccessLog | None = None
    tracing: Tracing | None = None

    def __bool__(self) -> bool:
        """Whether there is any sink."""
        return self.access_log is not None or self.tracing is not None


@asynccontextmanager
async def open_event_sinks(live: LiveSettings, reloads: Reloads) -> AsyncIterator[EventSinks]:
    """Open the sinks of the settings, until the end of the block.

    Raises :exc:`~broker_core.logs.LogFileError` or :exc:`TracingUnavailable`.
    """
    settings = live.current
    async with AsyncExitStack() as stack:
        access_log: AccessLog | None = None
        if settings.log.access is not None:
            access_log = await asyncio.to_thread(AccessLog, settings.log.access)
            stack.push_async_callback(asyncio.to_thread, access_log.close, _LAST_LINES)
            reloads.add("access log", access_log.reopen)
            live.add("log.access", partial(_prepare_access_log, access_log))
        tracing: Tracing | None = None
        if settings.tracing is not None:
            tracing = await asyncio.to_thread(open_tracing, settings.tracing)
            stack.push_async_callback(asyncio.to_thread, tracing.close, _LAST_SPANS)
        yield EventSinks(access_log, tracing)


def _prepare_access_log(access_log: AccessLog, settings: Settings) -> Callable[[], None]:
    assert settings.log.access is not None  # that it is there at all needs a restart
    return access_log.prepare(settings.log.access)


def open_tracing(settings: TracingSettings) -> Tracing:
    """The maker and sender of spans. Raises :exc:`TracingUnavailable`."""
    try:
        from broker_core.tracing import Tracing
    except ImportError as error:
        raise TracingUnavailable(
            "tracing: it needs the libraries of the extra otel, opentelemetry-sdk and "
            f"opentelemetry-exporter-otlp-proto-http: {error}"
        ) from error
    return Tracing.to_collector(settings)
