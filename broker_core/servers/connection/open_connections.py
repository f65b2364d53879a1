"""The open connections of one server: how many there are, which of them has an unfinished frame, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from broker_core.servers.admission import ServerLoad
from broker_core.servers.connection.client_connection import ClientConnection

__all__ = ["OpenConnections"]

#: Seconds for requests to end that were cancelled.
_LAST_TASKS: Final = 5.0


class OpenConnections:
    """The open connections; each says itself that it is there, and that it is over: :meth:`opened`, :meth:`closed`."""

    def __init__(self, load: ServerLoad) -> None:
        self._load = load
        self._connections: set[ClientConnection] = set()
        self._all_closed = asyncio.Event()
        self._stopping = False
        load.make_room = self.drop_unfinished

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[ClientConnection]:
        return iter(self._connections)

    def opened(self, connection: ClientConnection) -> None:
        self._connections.add(connection)
        self._load.connections += 1
        if self._stopping:  # it was accepted in the last moment
            connection.abort()

    def closed(self, connection: ClientConnection) -> None:
        self._connections.discard(connection)
        self._load.connections -= 1
        if not self._connections:
            self._all_closed.set()

    def drop_unfinished(self, size: int) -> None:
        """Close the connection with the most bytes of an unfinished frame, if there is no room for a whole command of
        ``size`` bytes.

        One that holds fewer bytes than the command is not closed for it.
        """
        largest = max(self._connections, key=attrgetter("unfinished"), default=None)
        if largest is not None and largest.unfinished >= max(size, 1):
            largest.drop_unfinished()

    async def close(self, drain: float) -> None:
        """Let requests end for up to ``drain`` seconds, then close all connections."""
        self._stopping = True
        self._all_closed.clear()
        for connection in list(self._connections):
            connection.drain()
        if self._connections and drain > 0:
            try:
                async with asyncio.timeout(drain):
                    await self._all_closed.wait()
            except TimeoutError:
                pass
        while self._connections:
            for connection in list(self._connections):
                connection.abort()
            self._all_closed.clear()
            await self._all_closed.wait()
        if self._load.request_tasks:  # cancelled with their connections
            await asyncio.wait(self._load.request_tasks, timeout=_LAST_TASKS)
