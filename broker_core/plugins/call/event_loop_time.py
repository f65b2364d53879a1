"""Measurement of how long the ``async`` hooks of plugins hold the event loop.

A coroutine runs in steps, from one waiting ``await`` to the next. While a step runs, the event loop is blocked: no
PING is answered. asyncio cannot interrupt a step, and does not report which hook it belonged to, so each step is timed
here. Tasks that a hook starts by itself are not timed, nor is the time in which the thread was ready to run and a busy
machine had no processor for it, which is not the hook's fault. Sleeps and computations count.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any, Final

import structlog

__all__ = ["BLOCKED", "LoopTime", "Stepwise"]

log = structlog.get_logger(__name__)

#: Seconds from which on a step counts as blocking the loop, as in asyncio's debug mode.
BLOCKED: Final = 0.1
#: At most one line of the log for each hook in so many seconds.
LOG_EVERY: Final = 10.0

#: Linux's account of the thread that opens it: nanoseconds run, nanoseconds waited for a processor, and time slices.
_SCHEDSTAT: Final = "/proc/thread-self/schedstat"


class _Account:
    """The open account of one thread; closed with the thread."""

    def __init__(self) -> None:
        self._descriptor = -1
        with suppress(OSError):
            self._descriptor = os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def waited(self) -> int:
        """Nanoseconds that the thread has waited for a processor; 0 if the system does not count them."""
        try:
            return int(os.pread(self._descriptor, 80, 0).split()[1])
        except (OSError, ValueError, IndexError):
            return 0


class _Accounts(threading.local):
    """The account of the current thread."""

    def __init__(self) -> None:
        self.own = _Account()


_accounts = _Accounts()
# A child has the descriptors of its parent's threads.
os.register_at_fork(after_in_child=lambda: setattr(_accounts, "own", _Account()))


def _clock() -> float:
    """A clock in seconds of this thread, without its waits for a processor."""
    account = _accounts.own
    waited = account.waited()
    while True:
        now = time.perf_counter()
        before, waited = waited, account.waited()
        if waited == before:  # or it waited while it read them, and they are of two moments
            return now - waited / 1e9


class LoopTime:
    """The steps of one ``async`` hook of one plugin, all its calls together. Times are in seconds."""

    __slots__ = ("_hook", "_next_log", "_not_logged", "_plugin", "blocked", "longest", "seconds")

    def __init__(self, plugin: str, hook: str) -> None:
        self._plugin = plugin
        self._hook = hook
        self._next_log = 0.0
        self._not_logged = 0
        self.seconds = 0.0  # of all steps
        self.blocked = 0  # steps of BLOCKED and more
        self.longest = 0.0

    def add(self, seconds: float, now: float) -> None:
        """One step, which ended at ``now`` on any one monotonic clock."""
        self.seconds += seconds
        self.longest = max(self.longest, seconds)
        if seconds < BLOCKED:
            return
        self.blocked += 1
        if now < self._next_log:
            self._not_logged += 1
            return
        log.warning(
            "plugin blocks the event loop: make its hook a plain function, which runs in a thread",
            plugin=self._plugin,
            hook=self._hook,
            seconds=round(seconds, 3),
            not_logged=self._not_logged,
        )
        self._next_log = now + LOG_EVERY
        self._not_logged = 0

    def describe(self) -> dict[str, Any]:
        """Plain values; times in milliseconds."""
        return {
            "total_ms": round(self.seconds * 1000, 3),
            "longest_ms": round(self.longest * 1000, 3),
            "blocked": self.blocked,
        }


class Stepwise(Generator[Any, Any, Any]):
    """An awaitable that runs the result of ``start``, and times each of its steps, the call of ``start`` included.

    ``on_step`` is called with the seconds of each step as it ends.
    """

    __slots__ = ("_loop_time", "_on_step", "_start", "_steps")

    def __init__(
        self,
        start: Callable[[], Awaitable[Any]],
        loop_time: LoopTime,
        on_step: Callable[[float], None] | None = None,
    ) -> None:
        self._start = start
        self._loop_time = loop_time
        self._on_step = on_step
        self._steps: Generator[Any, Any, Any] | None = None

    # ``await`` drives this object like a coroutine: with send(), throw() and close().

    def __await__(self) -> Stepwise:
        return self

    def send(self, value: Any) -> Any:
        begun = _clock()
        try:
            if self._steps is None:
                self._steps = _steps_of(self._start())
            return self._steps.send(value)
        finally:
            self._ended(begun)

    def throw(self, *error: Any) -> Any:
        assert self._steps is not None  # ``await`` has sent something before
        begun = _clock()
        try:
            return self._steps.throw(*error)
        finally:
            self._ended(begun)

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()

    def _ended(self, begun: float) -> None:
        now = _clock()
        self._loop_time.add(now - begun, now)
        if self._on_step is not None:
            self._on_step(now - begun)


def _steps_of(answer: Awaitable[Any]) -> Any:
    """The object to drive step by step: the coroutine itself, or the iterator of another awaitable."""
    if hasattr(answer, "send"):
        return answer
    steps = answer.__await__()
    # A bare iterator waits, but takes no values: all its work is in its __next__.
    return steps if hasattr(steps, "send") else _sent(steps)


def _sent(steps: Any) -> Generator[Any, Any, Any]:
    return (yield from steps)
