"""Some connections to one cluster: opened on demand, replaced when they die, with a back-off while it is down."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from broker_core.client import ClientError, ConnectionLost, LookupClient, ServiceUrl
from broker_core.upstream.pulsar.options import UpstreamOptions
from broker_core.wire.pulsar import CommandConnected

__all__ = ["ConnectionPool"]

T = TypeVar("T")

_TRIES: Final = (
    2  # what is asked of a cluster changes nothing there, so a lost answer may be asked for again, once
)

_log = structlog.get_logger(__name__)


class ConnectionPool:
    """At most ``size`` connections; another is opened while every one has ``busy`` requests or more waiting.

    A connection that dies fails its own requests only, each of which is asked once more over another. While there is
    none, one attempt after the other is made, with growing pauses between; requests wait for it, but only so long.
    ``on_connected`` is told what the server said of itself, for every connection.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        service_url: str,
        *,
        size: int,
        busy: int,
        max_frame: int | None,
        on_connected: Callable[[CommandConnected], None],
    ) -> None:
        self._options = options
        self._service_url = ServiceUrl.parse(service_url).text
        self._size = size
        self._busy = busy
        self._max_frame = max_frame
        self._on_connected = on_connected
        self._open: list[LookupClient] = []
        self._connecting: asyncio.Task[None] | None = None
        self._news = asyncio.Event()  # set at each attempt's end, and replaced
        self._attempts = 0
        self._failures = 0
        self._reason = "not connected yet"
        self._stopped = False

    def start(self) -> None:
        """Begin to connect; from now on the pool keeps at least one connection."""
        self._connect()

    async def attempted(self, timeout: float) -> None:
        """Wait until the first attempt to connect has ended, either way, at most ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while not self._attempts:
                    await self._news.wait()
        except TimeoutError:
            pass

    async def stop(self) -> None:
        """Close all connections; what is asked over them fails, and so does what is asked from now on."""
        self._stopped = True
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        for client in list(self._open):
            await client.close()
        self._tell()

    async def use(self, ask: Callable[[LookupClient], Awaitable[T]]) -> T:
        """The result of ``ask`` on a connection. Raises its errors, and :exc:`ConnectionLost` where there is none."""
        for remaining in reversed(range(_TRIES)):
            client = await self._client()
            try:
                return await ask(client)
            except ConnectionLost:
                if not remaining or client.is_open:
                    raise
        raise AssertionError("unreachable")

    async def _client(self) -> LookupClient:
        """The connection with the least to do, as soon as there is one."""
        if not self._open:
            self._connect()
            try:
                async with asyncio.timeout(self._options.connection_wait):
                    while not self._open and not self._stopped:
                        await self._news.wait()
            except TimeoutError:
                pass
            if not self._open:
                raise ConnectionLost(f"no connection to {self._service_url}: {self._reason}")
        client = min(self._open, key=lambda each: each.pending)
        if client.pending >= self._busy and len(self._open) < self._size:
            self._connect()
        return client

    def _connect(self) -> None:
        if self._connecting is None and not self._stopped:
            self._connecting = asyncio.get_running_loop().create_task(self._keep_connecting())
            self._connecting.add_done_callback(self._connected)

    def _connected(self, _task: asyncio.Task[None]) -> None:
        self._connecting = None
        if not self._open:
            self._connect()  # it was lost again at once

    async def _keep_connecting(self) -> None:
        """One attempt after the other until one succeeds. While others are open, a single one."""
        options = self._options
        while True:
            client = LookupClient(
                self._service_url,
                client_version=options.client_version,
                connect_timeout=options.connect_timeout,
                keep_alive=options.pulsar.keep_alive,
                max_frame=self._max_frame,
                on_lost=self._lost,
            )
            try:
                await client.connect(first=self._attempts)
            except ClientError as failed:
                self._attempts += 1
                self._failures += 1
                self._reason = str(failed)
                log = _log.warning if self._failures == 1 else _log.debug
                log("upstream unreachable", service_url=self._service_url, reason=self._reason)
                self._tell()
                if self._open:
                    return
                pause = min(options.longest_backoff, options.first_backoff * 2 ** min(self._failures - 1, 16))
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  # only spreads attempts
                continue
            self._attempts += 1
            self._failures = 0
            if client.is_open:
                self._open.append(client)
                self._on_connected(client.server)
                _log.info(
                    "upstream connected",
                    service_url=self._service_url,
                    server=client.server.server_version,
                    connections=len(self._open),
                )
            self._tell()
            return

    def _lost(self) -> None:
        """A connection is open no more: forget it, and see to it that there is one."""
        self._open = [client for client in self._open if client.is_open]
        if not self._open and not self._stopped:
            self._reason = "the connection was lost"
            self._connect()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
