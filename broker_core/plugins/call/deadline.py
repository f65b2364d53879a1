"""The deadline of one call of a plugin. Its clock stops while the plugin waits for the broker (permits, ``rest()``)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from broker_core.errors import ListingFailed
from broker_core.plugins.raised_exceptions import is_a

__all__ = ["Deadline", "Waits"]

#: Exceptions of a group that are compared: a request makes no more calls of the broker at a time.
_OF_A_GROUP: Final = 16

#: A function of the broker that a plugin may have to wait for.
Waits: TypeAlias = Callable[..., Awaitable[Any]]


class Deadline:
    """A wait for a piece of work, at most for ``seconds`` of the work's own time."""

    __slots__ = (
        "_begun",
        "_left",
        "_loop",
        "_paused_at",
        "_pauses",
        "_raised",
        "_since",
        "_timer",
        "_waiter",
        "overrun",
        "seconds",
        "stood_still",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        #: The deadline in seconds.
        self.seconds = seconds
        self._left = seconds
        self._since = loop.time()
        self._begun = False
        self._pauses = 0
        self._paused_at = 0.0
        #: Seconds for which the work waited for the broker.
        self.stood_still = 0.0
        #: Whether the work held the event loop beyond its time, when nothing could end it.
        self.overrun = False
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._raised: list[BaseException] = []

    async def wait(self, work: asyncio.Future[Any]) -> bool:
        """Whether ``work`` ended in time. Neither a time-out nor a cancellation of this call ends the work itself."""
        await asyncio.sleep(0)  # most plugins that do not wait have answered after this
        if work.done():
            return not self.overrun
        self._begun = True
        self._waiter = self._loop.create_future()
        work.add_done_callback(self._wake)
        self._resume()
        try:
            await self._waiter
        finally:
            self._stop()
            self._waiter = None
            work.remove_done_callback(self._wake)
        return work.done() and not self.overrun

    def held_loop(self, seconds: float) -> None:
        """Note that the work has held the event loop for so many seconds, without a pause.

        Only the work's own use of the loop can overrun its time, not that of others.
        """
        if self._timer is not None:
            left = self._left - (self._loop.time() - self._since)
        else:
            if not self._begun:
                self._left -= seconds
            left = self._left
        if left < 0 < left + seconds:
            self.overrun = True

    def paused(self, function: Waits) -> Waits:
        """A wrapper of ``function``, during which this clock stands still: it waits for the broker, not for the plugin.

        A hook that runs in a thread, with an event loop of its own, may call it too: it runs on the broker's loop. A
        :exc:`~broker_core.errors.ListingFailed` that it raises is the broker's (:meth:`raised`).
        """

        async def here(*given: Any, **named: Any) -> Any:
            self._stop()
            if not self._pauses:
                self._paused_at = self._loop.time()
            self._pauses += 1
            try:
                return await function(*given, **named)
            except ListingFailed as error:  # other errors are due to the plugin's arguments
                self._raised.append(error)
                raise
            finally:
                self._pauses -= 1
                if not self._pauses:
                    self.stood_still += self._loop.time() - self._paused_at
                self._resume()

        async def anywhere(*given: Any, **named: Any) -> Any:
            if asyncio.get_running_loop() is self._loop:
                return await here(*given, **named)
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(here(*given, **named), self._loop)
            )

        return anywhere

    def raised(self, error: BaseException) -> BaseException | None:
        """The error that the broker itself raised to the plugin, if ``error`` is one, or a group of only these."""
        if not self._raised:
            return None
        held = BaseExceptionGroup.exceptions.__get__(error) if is_a(error, BaseExceptionGroup) else (error,)
        mine = {id(each) for each in self._raised}
        if len(held) > _OF_A_GROUP or not all(id(each) in mine for each in held):
            return None
        first: BaseException = held[0]
        return first

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= self._loop.time() - self._since

    def _resume(self) -> None:
        if not self._pauses and self._timer is None and self._waiter is not None:
            self._since = self._loop.time()
            self._timer = self._loop.call_later(max(self._left, 0.0), self._wake, None)

    def _wake(self, _: object) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
