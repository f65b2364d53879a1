"""The time budget of one turn of the event loop for inline work, shared by all connections.

Each piece of inline work is short, but hundreds of pieces may be due in the same turn, and a PING would wait for all of
them. So the caller asks first whether this turn has time left, and uses a thread if not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

__all__ = ["TURN_SECONDS", "LoopTurn", "has_time", "loop_turn", "running_loop"]

#: Seconds of one turn, counted from the first quick work in it.
TURN_SECONDS: Final = 0.003
#: How many waiting callers get the same turn: their work is only known afterwards.
_AT_ONCE: Final = 4


class LoopTurn:
    """The turns of one event loop; only for its own thread."""

    __slots__ = ("_count", "_end", "_waiting", "received")

    def __init__(self) -> None:
        self._count = 0
        #: The number of the chunk of a client's bytes whose requests are being answered at this moment, else 0. All of
        #: them arrived before: data that is current for the first of them is current for the others.
        self.received = 0
        self._end: float | None = None
        self._waiting: deque[Callable[[], None]] = deque()

    def has_time(self) -> bool:
        """Whether this turn of the loop has time for one more piece of quick work. The first call begins it."""
        loop = asyncio.get_running_loop()
        if self._end is not None:
            return loop.time() < self._end
        self._end = loop.time() + TURN_SECONDS
        # A callback of call_soon runs in the next turn, before the events of sockets by then.
        loop.call_soon(self._next)
        return True

    def begin_received(self) -> None:
        """Begin to answer one client's chunk; :meth:`end_received` follows without a turn of the loop between."""
        self._count += 1
        self.received = self._count

    def end_received(self) -> None:
        """End the answers to a chunk: further requests may have come later."""
        self.received = 0

    def call_next(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the next turn, or the one after, as soon as its time reaches: first come, first served.

        A caller with more work than one turn allows calls it again, and is queued after the others.
        """
        self.has_time()  # it begins the turn, and so sees to the next
        self._waiting.append(callback)

    async def time(self) -> None:
        """Return in a turn that has time: at once, or in the order of calls."""
        if self._waiting or not self.has_time():
            woken = asyncio.Event()
            self.call_next(woken.set)
            await woken.wait()
            if not self.has_time():
                # The work of others, or another process, had all of it between the call and this task: a caller that
                # waited has a share, else it would wait for as long as every turn is a full one.
                self._end = asyncio.get_running_loop().time() + TURN_SECONDS / _AT_ONCE

    def _next(self) -> None:
        if not self._waiting:
            self._end = None
            return
        loop = asyncio.get_running_loop()
        self._end = loop.time() + TURN_SECONDS
        try:
            for _ in range(min(len(self._waiting), _AT_ONCE)):
                self._waiting.popleft()()
                if not self.has_time():
                    break
        finally:
            loop.call_soon(self._next)  # after their own call_soon


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTurn] = WeakKeyDictionary()


def loop_turn() -> LoopTurn:
    """The turn of the running event loop. Raises :exc:`RuntimeError` if none runs."""
    loop = asyncio.get_running_loop()
    turn = _turns.get(loop)
    if turn is None:
        turn = _turns[loop] = LoopTurn()
    return turn


def has_time() -> bool:
    """Whether this turn of the running event loop has time for one more piece of quick work."""
    return loop_turn().has_time()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop of this thread, if one runs."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
