"""The life of a server process: start, the line `ready`, signals, drain, exit."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import structlog

from broker_core.broker import Broker
from broker_core.cli.early_signals import note_hangups, noted_hangup
from broker_core.cli.server_process.server_log import ServerLog, server_log
from broker_core.cli.server_process.settings_check import SettingsCheck
from broker_core.cli.server_process.systemd_notify import ServiceManager
from broker_core.memory import keep_freed_memory
from broker_core.quantities import ListenAddress

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["ready_line", "serve"]

#: New objects until garbage is collected. A connection has some fifty: with Python's 700, five thousand clients that
#: reconnect at once cause half a dozen full collections, each of which takes longer than a PING may wait.
_NEW_OBJECTS: Final = 10_000

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

#: Seconds that threads have to end after everything else.
_LAST_WAIT: Final = 3.0
#: Seconds that the log has if the process ends at once.
_LAST_WORDS: Final = 0.3

_log = structlog.get_logger(__name__)

WhenReady = Callable[[Broker], Awaitable[None]]


def serve(
    settings: Settings,
    *,
    debug: bool = False,
    when_ready: WhenReady | None = None,
    load: Callable[[], Settings] | None = None,
    file: str | None = None,
    check: Sequence[str] | None = None,
    log_ready: bool = True,
) -> None:
    """Run a broker until a signal, then drain it. A second signal ends the process at once.

    ``when_ready`` is awaited after the line `ready`. ``debug``: everything is logged, whatever ``[log] level`` says.
    ``load`` reads the settings again for a reload, from ``file`` (empty: there is none). ``check`` are
    the options of the command `check` for these settings. ``log_ready``: the log says `ready` too. Errors of the start
    are raised.
    """
    note_hangups()
    keep_freed_memory()
    manager = ServiceManager.of(os.environ)
    logged = settings.log
    with server_log(logged.file, "debug" if debug else logged.level, logged.format) as log:
        leave = threading.Timer(_LAST_WAIT, _leave, (log,))
        leave.daemon = True
        try:
            with asyncio.Runner() as runner:
                runner.run(
                    _Process(settings, log, manager, load=load, file=file, check=check, debug=debug).run(
                        when_ready, log_ready
                    )
                )
                leave.start()  # closing the loop waits for threads, and a plugin's may be stuck for good
        finally:
            leave.cancel()


def _leave(log: ServerLog) -> None:
    _log.warning("leaving threads behind that do not end")
    log.flush(_LAST_WORDS)
    os._exit(0)


class _Process:
    """The broker of a process with its signals and its service manager."""

    def __init__(
        self,
        settings: Settings,
        log: ServerLog,
        manager: ServiceManager,
        *,
        load: Callable[[], Settings] | None = None,
        file: str | None = None,
        check: Sequence[str] | None = None,
        debug: bool = False,
    ) -> None:
        self._log = log
        self._debug = debug
        self._has_file = load is not None
        self._manager = manager
        self._check = None if check is None else SettingsCheck(check)
        self._broker = Broker(settings, load=load, check=self._check)
        self._broker.live.file = file
        self._stopping = asyncio.Event()
        self._reloading: asyncio.Task[None] | None = None
        self._reload_again = False
        #: Whether a reload was requested before the settings were watched: the file may have changed since it was read.
        self._reload_once_ready = False
        self._status = ""  # of a server that is ready

    async def run(self, when_ready: WhenReady | None, log_ready: bool = True) -> None:
        loop = asyncio.get_running_loop()
        broker = self._broker
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        if noted_hangup():
            self._reload()
        if self._has_file or broker.live.current.log.file is not None:
            broker.reloads.add("log file", self._log.reopen)
        broker.live.add("log", self._prepare_log)
        signs_of_life = asyncio.create_task(self._manager.keep_alive(), name="watchdog")
        try:
            if await self._started():
                # All objects so far stay: collecting among them again and again would cost 50 ms each time, in which no
                # PING is answered.
                gc.collect()
                gc.freeze()
                gc.set_threshold(_NEW_OBJECTS, 10, 10)
                addresses = _addresses(broker)
                self._status = ready_line(addresses)
                print(self._status, flush=True)
                if log_ready:
                    _log.info(
                        "ready", **{name: str(ListenAddress(*address)) for name, address in addresses.items()}
                    )
                self._manager.ready(self._status)
                if self._reload_once_ready:
                    self._reload()
                if when_ready is not None:
                    await when_ready(broker)
                await self._stopping.wait()
        finally:
            drain = broker.live.current.pulsar
            await broker.stop(drain.drain_timeout, delay=drain.drain_delay)
            if self._reloading is not None:
                await asyncio.gather(self._reloading, return_exceptions=True)
            if self._check is not None:
                await self._check.stop()
            signs_of_life.cancel()
            await asyncio.gather(signs_of_life, return_exceptions=True)
            loop.remove_signal_handler(signal.SIGHUP)
            note_hangups()  # removing a handler puts the default back
        _log.info("stopped")

    def _stop(self, number: signal.Signals) -> None:
        if self._stopping.is_set():
            _log.warning("a second signal: leaving at once", signal=number.name)
            self._log.flush(_LAST_WORDS)
            os._exit(128 + number)
        self._stopping.set()
        pulsar = self._broker.live.current.pulsar
        delay, drain = pulsar.drain_delay, pulsar.drain_timeout
        _log.info("stopping", signal=number.name, delay=delay, drain=drain)
        self._manager.stopping("draining")

    def _prepare_log(self, settings: Settings) -> Callable[[], None]:
        logged = settings.log
        return self._log.prepare(logged.file, "debug" if self._debug else logged.level, logged.format)

    def _reload(self) -> None:
        self._reload_once_ready = not self._broker.live.are_followed
        if self._reloading is None:
            self._reloading = asyncio.get_running_loop().create_task(self._reload_all(), name="reload")
        else:
            self._reload_again = True  # changes after the current reload has read the file are not missed

    async def _reload_all(self) -> None:
        try:
            while True:
                self._reload_again = False
                notify = bool(self._status) and not self._stopping.is_set()
                if notify:
                    self._manager.reloading()
                await self._broker.reloads.reload_all()
                if notify:
                    self._manager.ready(self._status)
                if not self._reload_again:
                    return
        finally:
            self._reloading = None

    async def _started(self) -> bool:
        """Start the broker; a signal meanwhile cancels the start. Raises the errors of the start."""
        start = asyncio.create_task(self._broker.start(), name="start")
        stop = asyncio.create_task(self._stopping.wait(), name="stop")
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
    addresses = {
        "pulsar": broker.pulsar_address,
        "pulsar+ssl": broker.pulsar_tls_address,
        "http": broker.http_address,
        "https": broker.https_address,
        "kafka": broker.kafka_address,
        "kafka+ssl": broker.kafka_tls_address,
    }
    return {name: address for name, address in addresses.items() if address is not None}


def ready_line(addresses: Mapping[str, tuple[str, int]]) -> str:
    """`ready pulsar=127.0.0.1:6650 http=[::1]:8080`: a program that starts the server reads the ports from it."""
    pairs = [f"{name}={ListenAddress(host, port)}" for name, (host, port) in addresses.items()]
    return " ".join(["ready", *pairs])
