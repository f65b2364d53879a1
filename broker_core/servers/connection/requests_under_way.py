"""The requests under way of one connection: their limit, and the places that are given back when one ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from broker_core.memory import let_go_of_cancelled
from broker_core.servers.admission import ServerLoad

__all__ = ["RequestsUnderWay"]

#: Requests of one connection that may be under way at a time; more are refused one by one.
_MOST: Final = 1000


class RequestsUnderWay:
    """The tasks of one connection. ``failed`` gets an error that no request may end with; ``ended`` is called after
    each request.
    """

    __slots__ = ("_ended", "_failed", "_load", "_loop", "_tasks")

    def __init__(
        self, load: ServerLoad, *, failed: Callable[[BaseException], None], ended: Callable[[], None]
    ) -> None:
        self._load = load
        self._failed = failed
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def take_place(self, size: int) -> bool:
        """Take a place for a request whose command has ``size`` bytes, if there is one."""
        return len(self._tasks) < _MOST and self._load.has_room_for(size) and self._load.slots.take()

    def start(self, work: Coroutine[Any, Any, None], size: int, on_end: Callable[[], None]) -> None:
        """Run the work of a request that has its place; ``on_end`` is called even if it was never begun."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        self._load.request_tasks.add(task)
        task.add_done_callback(partial(self._done, self._load.hold_command(size), on_end))

    def cancel(self) -> None:
        """Give up all requests: the client is gone."""
        for task in self._tasks:
            task.cancel()

    def _done(self, held: int, on_end: Callable[[], None], task: asyncio.Task[None]) -> None:
        self._load.hold(-held)
        self._tasks.discard(task)
        self._load.request_tasks.discard(task)
        self._load.slots.give_back()
        if task.cancelled():
            let_go_of_cancelled(task)
        on_end()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)
        self._ended()
