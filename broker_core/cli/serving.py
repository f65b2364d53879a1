"""The life of a server process: start, the line `ready`, signals, drain, exit."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

import structlog

from broker_core.broker import Broker
from broker_core.quantities import ListenAddress

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["ready_line", "serve"]

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

#: Seconds that threads have to end when everything else has.
_LAST_WAIT: Final = 3.0

_log = structlog.get_logger(__name__)


def serve(settings: Settings, *, when_ready: Callable[[Broker], Awaitable[None]] | None = None) -> None:
    """Run a broker until a signal, then drain it. A second signal ends the process at once.

    ``when_ready`` is awaited after the line `ready`. What goes wrong at the start is raised.
    """
    leave = threading.Timer(_LAST_WAIT, _leave)
    leave.daemon = True
    try:
        with asyncio.Runner() as runner:
            runner.run(_serve(settings, when_ready))
            leave.start()  # closing the loop waits for threads, and a plugin's may be stuck for good
    finally:
        leave.cancel()


def _leave() -> None:
    _log.warning("leaving threads behind that do not end")
    sys.stderr.flush()
    os._exit(0)


async def _serve(settings: Settings, when_ready: Callable[[Broker], Awaitable[None]] | None) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()

    def on_signal(number: signal.Signals) -> None:
        if stopping.is_set():
            _log.warning("a second signal: leaving at once", signal=number.name)
            sys.stderr.flush()
            os._exit(128 + number)
        stopping.set()
        _log.info("stopping", signal=number.name, drain=settings.pulsar.drain_timeout)

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    broker = Broker(settings)
    try:
        if await _started(broker, stopping):
            # What was imported and made so far stays: going through it again and again would cost 50 ms each time,
            # in which no PING is answered.
            gc.collect()
            gc.freeze()
            addresses = _addresses(broker)
            print(ready_line(addresses), flush=True)
            _log.info("ready", **{name: str(ListenAddress(*address)) for name, address in addresses.items()})
            if when_ready is not None:
                await when_ready(broker)
            await stopping.wait()
    finally:
        await broker.stop(settings.pulsar.drain_timeout)
    _log.info("stopped")


async def _started(broker: Broker, stopping: asyncio.Event) -> bool:
    """Start the broker; a signal in the midst of it gives up. Raises what the start raises."""
    start = asyncio.create_task(broker.start(), name="start")
    stop = asyncio.create_task(stopping.wait(), name="stop")
    try:
        await asyncio.wait({start, stop}, return_when=asyncio.FIRST_COMPLETED)
        if start.done():
            start.result()
            return True
        return False
    finally:
        for task in (start, stop):
            task.cancel()
        await asyncio.gather(start, stop, return_exceptions=True)


def _addresses(broker: Broker) -> dict[str, tuple[str, int]]:
    addresses = {"pulsar": broker.pulsar_address}
    if broker.http_address is not None:
        addresses["http"] = broker.http_address
    return addresses


def ready_line(addresses: Mapping[str, tuple[str, int]]) -> str:
    """`ready pulsar=127.0.0.1:6650 http=[::1]:8080`: whoever starts the process reads the ports from it."""
    pairs = [f"{name}={ListenAddress(host, port)}" for name, (host, port) in addresses.items()]
    return " ".join(["ready", *pairs])
