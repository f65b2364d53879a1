"""The load of a server: its open connections, their tasks and buffered bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar

from broker_core.concurrency import ended_within
from broker_core.memory import let_go_of_cancelled
from broker_core.servers.admission import RequestSlots

__all__ = ["ConnectionTasks", "ServerLoad"]

#: All incomplete frames and long requests together, in bytes; requests are small, so that only an attack comes near.
_MAX_BUFFERED: Final = 64 * 1024 * 1024
#: Bytes of a command up to which it is not counted while it is under way; a longer one (its pattern may have megabytes)
#: counts together with the incomplete frames.
_SMALL_COMMAND: Final = 4096
#: Seconds for requests to end that were cancelled.
_LAST_TASKS: Final = 5.0


_Of = TypeVar("_Of")


class _Connection(Protocol):
    @property
    def unfinished(self) -> int: ...
    def drop_unfinished(self) -> None: ...
    def drain(self) -> None: ...
    def abort(self) -> None: ...


class ServerLoad:
    """Load of a server: its open connections, tasks and buffered bytes.

    ``concurrent_requests`` is how many requests may be under way at a time (0: any number).

    Each connection reports itself that it is there, and that it is over: :meth:`opened`, :meth:`closed`.
    """

    __slots__ = ("_all_closed", "_stopping", "buffered_bytes", "connections", "request_tasks", "slots")

    def __init__(self, concurrent_requests: int = 0) -> None:
        self.slots = RequestSlots(concurrent_requests)
        self.request_tasks: set[asyncio.Task[Any]] = set()  # of all connections
        self.connections: set[_Connection] = set()
        self.buffered_bytes = 0
        self._all_closed = asyncio.Event()
        self._stopping = False

    def opened(self, connection: _Connection) -> None:
        self.connections.add(connection)
        if self._stopping:  # it was accepted in the last moment
            connection.abort()

    def closed(self, connection: _Connection) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self._all_closed.set()

    def hold(self, change: int) -> None:
        """A connection holds so many bytes more (or less) of frames that are incomplete, wait or are long."""
        self.buffered_bytes += change

    def hold_command(self, size: int) -> int:
        """Hold a command of ``size`` bytes while it is under way; returns its bytes that count: none of a small one."""
        held = size if size > _SMALL_COMMAND else 0
        self.buffered_bytes += held
        return held

    def has_room_for(self, size: int) -> bool:
        """Whether a command of ``size`` bytes may be held while it is under way.

        If there is no room for it, the connection with the most bytes of an unfinished frame is closed, unless it holds
        fewer bytes than the command.
        """
        if size <= _SMALL_COMMAND:
            return True
        if self.buffered_bytes + size > _MAX_BUFFERED:
            largest = max(self.connections, key=attrgetter("unfinished"), default=None)
            if largest is not None and largest.unfinished >= size:
                largest.drop_unfinished()
        return self.buffered_bytes + size <= _MAX_BUFFERED

    def is_too_much(self, size: int) -> bool:
        """Whether a connection that holds ``size`` bytes has to go: all hold too much, and this one is a large part."""
        return self.buffered_bytes > _MAX_BUFFERED and size * len(self.connections) >= self.buffered_bytes

    async def close(self, drain: float) -> None:
        """Let requests end for up to ``drain`` seconds, then close all connections."""
        self._stopping = True
        self._all_closed.clear()
        for connection in list(self.connections):
            connection.drain()
        if self.connections and drain > 0:
            await ended_within(drain, self._all_closed.wait())
        while self.connections:
            for connection in list(self.connections):
                connection.abort()
            self._all_closed.clear()
            await self._all_closed.wait()
        if self.request_tasks:  # cancelled with their connections
            await asyncio.wait(self.request_tasks, timeout=_LAST_TASKS)


class ConnectionTasks:
    """Tasks of one connection for its commands, which are held while they are under way."""

    __slots__ = ("_load", "_loop", "_tasks")

    def __init__(self, load: ServerLoad) -> None:
        self._load = load
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(
        self,
        work: Coroutine[Any, Any, Any],
        size: int,
        ended: Callable[[_Of, asyncio.Task[Any]], None],
        of: _Of,
    ) -> None:
        """Run the work of a command of ``size`` bytes; ``ended`` is called with ``of`` even if it was never begun."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        self._load.request_tasks.add(task)
        task.add_done_callback(partial(self._done, self._load.hold_command(size), ended, of))

    def cancel(self) -> None:
        """Give up all tasks: the client is gone."""
        for task in self._tasks:
            task.cancel()

    def _done(
        self, held: int, ended: Callable[[_Of, asyncio.Task[Any]], None], of: _Of, task: asyncio.Task[Any]
    ) -> None:
        self._load.hold(-held)
        self._tasks.discard(task)
        self._load.request_tasks.discard(task)
        if task.cancelled():
            let_go_of_cancelled(task)
        ended(of, task)
