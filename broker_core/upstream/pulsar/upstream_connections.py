"""Connections to the brokers by the principal that they are used for, and by broker: none is shared between two."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from broker_core.access.asker import Asker
from broker_core.client import LookupClient
from broker_core.upstream.pulsar.connection_pool import ConnectionPool
from broker_core.upstream.pulsar.options import UpstreamOptions
from broker_core.wire.pulsar import CommandConnected

__all__ = ["UpstreamConnections"]

T = TypeVar("T")


class UpstreamConnections:
    """The pools of one purpose (lookups or listings): at most ``size`` connections each, another one is opened while
    every one has ``busy`` requests or more waiting.
    """

    def __init__(
        self,
        options: UpstreamOptions,
        *,
        size: int,
        busy: int,
        max_frame: int | None,
        on_connected: Callable[[CommandConnected], None],
    ) -> None:
        self._options = options
        self._size = size
        self._busy = busy
        self._max_frame = max_frame
        self._on_connected = on_connected
        self._pools: dict[str, ConnectionPool] = {}
        self._own = self._pool(options.upstream.service_url)

    async def start(self, wait: float) -> None:
        """Begin to connect, and wait at most ``wait`` seconds for the end of the first attempt."""
        self._own.start()
        await self._own.attempted(wait)

    async def stop(self) -> None:
        """Close all connections; what is asked over them fails, and so does what is asked from now on."""
        await asyncio.gather(*(pool.stop() for pool in self._pools.values()))

    async def use(
        self,
        asker: Asker,  # noqa: ARG002  # every request is sent as this server's own until there is authentication
        ask: Callable[[LookupClient], Awaitable[T]],
        *,
        address: str | None = None,
    ) -> T:
        """The result of ``ask`` on a connection of the asker's principal: to the service URL, or to the broker at
        ``address`` (a service URL, of a redirect).

        Raises what ``ask`` raises, :exc:`~broker_core.client.ConnectionLost` where there is no connection,
        :exc:`~broker_core.client.HandshakeRefused` where the brokers refuse it, and
        :exc:`~broker_core.client.InvalidServiceUrl` for an address that is none.
        """
        return await self._pool(address or self._options.upstream.service_url).use(ask)

    def _pool(self, service_url: str) -> ConnectionPool:
        pool = self._pools.get(service_url)
        if pool is None:
            pool = self._pools[service_url] = ConnectionPool(
                self._options,
                service_url,
                size=self._size,
                busy=self._busy,
                max_frame=self._max_frame,
                on_connected=self._on_connected,
            )
        return pool
