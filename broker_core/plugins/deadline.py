"""The time that one call of a plugin has, which stands still while the plugin waits for permits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from broker_core.errors import ListingFailed
from broker_core.listing_request import ListingRequest

__all__ = ["Deadline"]


class Deadline:
    """Waits for a piece of work, but no longer than ``seconds`` of the work's own time."""

    __slots__ = (
        "_begun",
        "_left",
        "_loop",
        "_pauses",
        "_raised",
        "_reserve",
        "_since",
        "_timer",
        "_waiter",
        "overrun",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._left = seconds
        self._since = loop.time()
        self._begun = False
        self._pauses = 0
        #: Whether the work held the event loop beyond its time: nothing could end it then.
        self.overrun = False
        self._timer: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._raised: list[BaseException] = []
        self._reserve: Callable[[int], Awaitable[None]]

    async def wait(self, work: asyncio.Future[Any]) -> bool:
        """Whether ``work`` ended in time. Neither a time-out nor a cancellation of this call ends the work itself."""
        await asyncio.sleep(0)  # most plugins that need no waiting have answered after this
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
        """The work has just given the event loop back, which it held for so long without a pause.

        Only what the work itself did with the loop can overrun: it is not to blame for a loop that others held.
        """
        if self._timer is not None:
            left = self._left - (self._loop.time() - self._since)
        else:
            if not self._begun:
                self._left -= seconds
            left = self._left
        if left < 0 < left + seconds:
            self.overrun = True

    def request(self, request: ListingRequest) -> ListingRequest:
        """The request as the plugin gets it: waiting in its ``reserve()`` stops this clock.

        A hook that runs in a thread, with an event loop of its own, may reserve too: the permits are the broker's, so
        it is done on the broker's loop.
        """
        self._reserve = request.reserve_bytes
        # Not dataclasses.replace, which takes as long as all the rest of a call.
        return ListingRequest(
            request.namespace,
            request.mode,
            request.pattern,
            request.topics_hash,
            request.properties,
            request.asker,
            request.deadline,
            self._reserve_anywhere,
            page=request.page,
            wants=request.wants,
        )

    def raised(self, error: BaseException) -> bool:
        """Whether this error is one that ``request.reserve()`` raised, not the plugin."""
        return any(error is each for each in self._raised)

    async def _reserve_anywhere(self, size: int) -> None:
        if asyncio.get_running_loop() is self._loop:
            await self._reserve_here(size)
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._reserve_here(size), self._loop))

    async def _reserve_here(self, size: int) -> None:
        self._stop()
        self._pauses += 1
        try:
            await self._reserve(size)
        except ListingFailed as error:  # anything else is what the plugin's argument deserved
            self._raised.append(error)
            raise
        finally:
            self._pauses -= 1
            self._resume()

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
