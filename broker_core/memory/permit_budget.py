"""Memory permits: how much memory all requests together may hold at a time (PIP-442's limiter, for one event loop).

Theory of operation. A budget has a number of permits (bytes). A request acquires permits before it takes memory, and
releases them when the memory is free. If the permits are not free, the demand waits in a queue:

- The queue is first in, first out, in turns: each connection's first demand comes before any connection's second. A
  hundred demands of one client do not delay the first demand of another.
- A small demand passes a larger demand that does not fit. Passing ends when the larger demand has waited half of its
  timeout; it would starve otherwise.
- A demand above the maximum is clamped to the maximum. It runs alone, and is never refused.
- The queue has a limit (``PermitQueueFull``) and a timeout (``PermitTimeout``), below the 30 s of clients.
- A cancelled demand leaves the queue at once: its client disconnected, or its task was cancelled.
- An update upwards keeps its permits and waits for the difference only. When every acquired permit belongs to requests
  that wait in this queue, nothing would ever be released: then the first waiting request gets the permits that are
  left. ``acquired`` never exceeds the maximum.
- Permits that outlive their request (:meth:`PermitBudget.keep`) may be held for good, so a demand does not wait for
  them: a demand above the remaining permits runs alone. Demands wait only when kept permits exceed :data:`_MOST_KEPT`.

Everything happens on the event loop's thread, and nothing polls.
"""

from __future__ import annotations

import asyncio
import math
import operator
import sys
from collections.abc import Callable, Hashable
from typing import Any, Final, SupportsIndex, TypeAlias

from broker_core.concurrency import TurnQueue
from broker_core.memory.permit_errors import (
    PermitCancelled,
    PermitError,
    PermitQueueFull,
    PermitsClosed,
    PermitTimeout,
)

__all__ = ["Keep", "Permit", "PermitBudget", "whole_count"]


#: The share of the timeout after which a waiting demand presses the holders of permits, and the share between repeats.
PRESSURE: Final = 0.1
_PRESS_AGAIN: Final = 0.02
#: A demand of at most this share of the budget is small: it may pass a larger one that has to wait.
_SMALL_SHARE: Final = 16
#: How far after the head of a queue small demands are looked for, so that a release never scans a thousand waiters.
_PASSING_LOOKS_AT: Final = 64
#: The share of a budget that may outlive its requests without keeping large demands out.
_MOST_KEPT: Final = 0.75
#: Permits of a budget that has no maximum.
_UNLIMITED: Final = sys.maxsize


def whole_count(n: SupportsIndex) -> int:
    """A number of permits as an ``int``: :exc:`TypeError` for any other type (a NaN would spoil every sum after it),
    :exc:`ValueError` for less than 0.
    """
    count = operator.index(n)
    if count < 0:
        raise ValueError(f"Invalid negative permits value: {count}")
    return count


class Permit:
    """A number of permits held by one request. Made by a :class:`PermitBudget` only; releasing twice is harmless."""

    __slots__ = ("__weakref__", "budget", "count", "lasts", "released", "updates")

    def __init__(self, budget: PermitBudget, count: int, *, lasts: bool = False) -> None:
        self.budget = budget
        self.count = count  # 0 once this was released, or replaced by an update; only the budget sets it
        self.lasts = lasts  # beyond its request
        self.updates = 0  # updates of this permit that wait in the queue
        self.released = False  # its owner wants nothing back, not even from an update that fails

    def release(self) -> None:
        self.budget.release(self)

    def __repr__(self) -> str:
        return f"<Permit {self.count} of {self.budget!r}>"


#: Takes permits, which are its own to release.
Keep: TypeAlias = Callable[[Permit], None]


class _Waiter:
    __slots__ = ("cancelled", "demand", "future", "held", "key", "passed_until", "permit", "pressing", "turn")

    pressing: asyncio.TimerHandle

    def __init__(
        self,
        future: asyncio.Future[Permit],
        demand: int,
        permit: Permit | None,
        cancelled: asyncio.Future[Any] | None,
        passed_until: float,
        key: Hashable,
    ) -> None:
        self.future = future
        self.demand = demand
        self.permit = permit  # the permit that an update replaces
        self.cancelled = cancelled
        self.passed_until = passed_until  # loop time up to which small demands may be granted before this one
        self.key = key  # the connection that takes turns
        self.turn = (0, 0)
        self.held = 0  # the permits that it had when the update was granted

    @property
    def is_over(self) -> bool:
        """Whether the demand was cancelled."""
        return self.cancelled is not None and self.cancelled.done()

    def need(self, most: int) -> int:
        """The permits that a demand for ``most`` still lacks. An update of a released permit needs all of them."""
        demand = min(self.demand, most)
        return demand if self.permit is None else max(demand - self.permit.count, 0)


class PermitBudget:
    """A bounded number of permits, given out first in, first out.

    ``maximum`` of 0 or less is unlimited: no demand waits. ``queue_limit`` of 0 or less: no limit.
    ``timeout`` is in seconds; ``None``: no timeout. Grants without waiting, the usual case, are only counted
    (:attr:`granted_at_once`).
    """

    def __init__(
        self,
        maximum: int,
        *,
        queue_limit: int = 0,
        timeout: float = math.inf,
        name: str = "",
    ) -> None:
        self.name, self.timeout = name, timeout
        self.maximum, self.queue_limit = max(maximum, 0), max(queue_limit, 0)
        self._size = self.maximum or _UNLIMITED
        #: Called with the seconds that a demand waited until it was granted or gave up.
        self.on_wait: Callable[[float], None] | None = None
        self.on_timeout: Callable[[float], None] | None = None
        #: Called with this budget when a demand has waited for :data:`PRESSURE` of its timeout, and repeatedly after:
        #: the callee may make holders give their permits back.
        self.on_pressure: Callable[[PermitBudget], None] | None = None
        self.granted_at_once = 0
        self._acquired = 0
        self._held_by_waiting = 0  # part of _acquired: permits whose update waits in the queue
        self._kept = 0  # part of _acquired: permits that have outlived their request
        self._queue: TurnQueue[_Waiter] = TurnQueue()
        self._closed = False

    def __repr__(self) -> str:
        return f"<PermitBudget {self.name} {self.acquired}/{self.maximum or 'unlimited'}, {self.queue_size} waiting>"

    @property
    def available(self) -> int:
        return self._size - self._acquired

    def resize(self, maximum: int, *, timeout: float, queue_limit: int = 0) -> None:
        """Change the maximum, and the values for demands from now on. Held permits stay held."""
        self.timeout, self.queue_limit = timeout, max(queue_limit, 0)
        self.maximum = max(maximum, 0)
        self._size = self.maximum or _UNLIMITED
        self._drain()

    @property
    def acquired(self) -> int:
        return self._acquired

    @property
    def queue_size(self) -> int:
        return len(self._queue.items)

    def fits(self, n: int) -> bool:
        """Whether ``n`` permits can be had at all without being clamped to the maximum."""
        return n <= self._size

    def try_acquire(self, n: int) -> Permit | None:
        """``n`` permits at once, or ``None`` if that would mean to wait. Raises as :meth:`acquire` does."""
        demand = self._checked(n)
        if demand:
            demand = min(demand, self._most)
            if not self._is_free(demand):
                return None
            self._acquired += demand
        self.granted_at_once += 1
        return Permit(self, demand)

    def has_room(self, n: int) -> bool:
        """Whether :meth:`try_acquire` would give ``n`` permits. Raises as :meth:`acquire` does."""
        if whole_count(n) <= self._size - self._acquired and not self._queue.items and not self._closed:
            return True  # as a rule, and asked for each frame that is sent
        demand = self._checked(n)
        return not demand or self._is_free(min(demand, self._most))

    def count_granted(self, demands: int = 1) -> None:
        """Count demands that found room and took no permit, since their memory is free again already."""
        self.granted_at_once += demands

    async def acquire(self, n: int, *, timeout: float | None = None, key: Hashable = None) -> Permit:
        """Wait for ``n`` permits; more than the maximum means the maximum.

        ``timeout`` (seconds) replaces the budget's. Demands with different ``key`` take turns. Raises
        :exc:`PermitTimeout`, :exc:`PermitQueueFull` or :exc:`PermitsClosed`, and :exc:`ValueError` for a negative
        ``n``, :exc:`TypeError` for one that is no whole number.
        """
        permit = self.try_acquire(n)
        if permit is not None:
            return permit
        return await self._wait(self._checked(n), None, timeout, None, key)

    def try_update(self, permit: Permit, n: int) -> Permit | None:
        """``permit`` changed to ``n`` permits at once, or ``None`` if that would mean to wait."""
        self._check_owner(permit)
        demand = self._checked(n)
        if demand > permit.count:
            demand = max(min(demand, self._most), permit.count)
        more = demand - permit.count
        if more > 0 and (more > self._size - self._acquired or not self._may_go_first(more)):
            return None
        self._zero(permit)
        self._acquired += more
        if more < 0:
            self._drain()
        return Permit(self, demand)

    async def update(
        self,
        permit: Permit,
        n: int,
        *,
        cancelled: asyncio.Future[Any] | None = None,
        key: Hashable = None,
    ) -> Permit:
        """Change ``permit`` to ``n`` permits: down at once, up by waiting for the difference.

        The returned permit replaces ``permit``, which is 0 from then on. A failed update leaves it as it is. Raises as
        :meth:`acquire` does, :exc:`PermitCancelled` once ``cancelled`` is done, and :exc:`ValueError` for a permit of
        another budget.
        """
        updated = self.try_update(permit, n)
        if updated is not None:
            return updated
        if cancelled is not None and cancelled.done():
            raise PermitCancelled
        return await self._wait(self._checked(n), permit, None, cancelled, key)

    def release(self, permit: Permit) -> None:
        """Give the permits back; once is enough, more is harmless. :exc:`ValueError` for a permit of another budget."""
        self._check_owner(permit)
        permit.released = True
        count = self._zero(permit)
        if count:
            self._acquired -= count
            self._drain()

    def split(self, permit: Permit, n: int) -> Permit:
        """Split at most ``n`` of the permits off, as a permit of their own. :exc:`ValueError` for a permit of another
        budget.
        """
        self._check_owner(permit)
        part = Permit(self, min(n, permit.count), lasts=permit.lasts)
        permit.count -= part.count
        self._held_by_waiting -= part.count * bool(permit.updates)
        return part

    def keep(self, permit: Permit, n: int) -> Permit:
        """Split at most ``n`` of the permits off for what outlives the request."""
        part = self.split(permit, n)
        part.lasts = True
        self._kept += part.count
        self._drain()  # a demand that waited for these permits runs with fewer
        return part

    def try_keep(self, n: int) -> Permit | None:
        """Permits for what no request has, without waiting; ``None`` unless half of all stay for requests."""
        if n > min(self._size // 2 - self._kept, self.available):
            return None
        permit = self.try_acquire(n)
        return None if permit is None else self.keep(permit, n)

    @property
    def _most(self) -> int:
        """The most permits that one demand may have: all but the kept ones, which may never come back."""
        return max(self._size - self._kept, self._size - int(self._size * _MOST_KEPT))

    def close(self) -> None:
        """Fail every waiting demand, and every later one, with :exc:`PermitsClosed`. Held permits can be released."""
        self._closed = True
        for waiter in self._queue.items.copy():
            self._remove(waiter)
            if not waiter.future.done():
                waiter.future.set_exception(PermitsClosed())

    def _checked(self, n: int) -> int:
        """The number of permits that a demand for ``n`` counts."""
        count = whole_count(n)
        if self._closed:
            raise PermitsClosed
        return min(count, self._size)

    def _check_owner(self, permit: Permit) -> None:
        if permit.budget is not self:
            raise ValueError(f"Invalid permit type: {permit!r} is not of {self!r}")

    async def _wait(
        self,
        demand: int,
        permit: Permit | None,
        timeout: float | None,
        cancelled: asyncio.Future[Any] | None,
        key: Hashable,
    ) -> Permit:
        if self.queue_limit and len(self._queue.items) >= self.queue_limit:
            raise PermitQueueFull
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = self.timeout if timeout is None else timeout
        waiter = _Waiter(loop.create_future(), demand, permit, cancelled, started + max(limit, 0.0) / 2, key)
        self._queue.put(waiter)
        if permit is not None:
            if not permit.updates:
                self._held_by_waiting += permit.count
            permit.updates += 1
        timer = loop.call_later(max(limit, 0.0), self._expire, waiter, limit)
        pressure = loop.call_later(max(limit, 0.0) * PRESSURE, self._press, waiter, max(limit, 0.0))
        waiter.pressing = pressure

        def give_up(_: asyncio.Future[Any]) -> None:
            self._fail(waiter, PermitCancelled())

        if cancelled is not None:
            cancelled.add_done_callback(give_up)
        self._drain()  # this one may be the last that everybody waits for
        try:
            granted = await waiter.future
        except asyncio.CancelledError:
            self._abandon(waiter)
            raise
        finally:
            timer.cancel()
            waiter.pressing.cancel()
            if cancelled is not None:
                cancelled.remove_done_callback(give_up)
        if self.on_wait is not None:
            self.on_wait(loop.time() - started)
        return granted

    def _press(self, waiter: _Waiter, limit: float) -> None:
        if not waiter.future.done():
            loop = waiter.future.get_loop()
            waiter.pressing = loop.call_later(limit * _PRESS_AGAIN, self._press, waiter, limit)
            if self.on_pressure is not None and self._queue.items[0] is waiter:
                self.on_pressure(self)

    def _expire(self, waiter: _Waiter, seconds: float) -> None:
        if not waiter.future.done():
            if self.on_timeout is not None:
                self.on_timeout(seconds)
            self._fail(waiter, PermitTimeout())

    def _fail(self, waiter: _Waiter, error: PermitError) -> None:
        self._remove(waiter)
        if not waiter.future.done():
            waiter.future.set_exception(error)
        self._drain()

    def _abandon(self, waiter: _Waiter) -> None:
        """Take back the permits that a task was granted in the moment of its cancellation, or else its place."""
        future = waiter.future
        if future.cancelled() or future.exception() is not None:
            self._remove(waiter)
        else:
            granted, permit = future.result(), waiter.permit
            self._acquired -= granted.count
            granted.count = 0
            # A failed update leaves the old permit, unless its owner has released it since the grant.
            if permit is not None and not permit.released:
                self._acquired += waiter.held
                permit.count = waiter.held
                if permit.updates:
                    self._held_by_waiting += waiter.held
        self._drain()

    def _is_free(self, demand: int) -> bool:
        return demand <= self._size - self._acquired and self._may_go_first(demand)

    def _may_go_first(self, need: int) -> bool:
        """Whether a demand that fits may be granted before the waiting ones: nobody waits, or it is small and the first
        waiting demand can still be passed.
        """
        if not self._queue.items:
            return True
        head = self._queue.items[0]
        if head.future.done() or need > self._size // _SMALL_SHARE or need >= head.need(self._most):
            return False
        return head.future.get_loop().time() < head.passed_until

    def _small_after_head(self) -> _Waiter | None:
        """The first demand after the head of the queue that fits and may be granted before the head."""
        free = self._size - self._acquired
        for waiter in self._queue.items[1:_PASSING_LOOKS_AT]:
            if waiter.future.done() or waiter.is_over:
                continue
            need = waiter.need(self._most)
            if need <= free and self._may_go_first(need):
                return waiter
        return None

    def _drain(self) -> None:
        """Grant from the head of the queue as long as it fits, then small demands that may pass it."""
        while self._queue.items:
            head = self._queue.items[0]
            if head.future.done():  # cancelled a moment ago, its task has not run since
                self._remove(head)
            elif head.is_over:
                self._remove(head)
                head.future.set_exception(PermitCancelled())
            elif head.need(self._most) <= self._size - self._acquired:
                self._queue.take(head)
                self._granted(head)
            else:
                first = self._stuck() or self._small_after_head()
                if first is None:
                    return
                self._queue.remove(first)
                self._granted(first)

    def _stuck(self) -> _Waiter | None:
        """The first waiting holder, if every holder waits and none can release: see the theory of operation."""
        if self._held_by_waiting != self._acquired - self._kept:
            return None
        for waiter in self._queue.items:
            if waiter.permit is not None and waiter.permit.count and not waiter.future.done():
                return waiter
        return None

    def _granted(self, waiter: _Waiter) -> None:
        """Grant a demand that has just left the queue its permits, or the permits that are left."""
        take = min(waiter.need(self._most), self._size - self._acquired)
        self._waits_no_more(waiter)
        if waiter.permit is not None:
            waiter.held = self._zero(waiter.permit)
        self._acquired += take
        waiter.future.set_result(Permit(self, waiter.held + take))

    def _remove(self, waiter: _Waiter) -> None:
        if self._queue.remove(waiter):
            self._waits_no_more(waiter)

    def _waits_no_more(self, waiter: _Waiter) -> None:
        permit = waiter.permit
        if permit is not None:
            permit.updates -= 1
            if not permit.updates:
                self._held_by_waiting -= permit.count

    def _zero(self, permit: Permit) -> int:
        count = permit.count
        permit.count = 0
        if permit.updates:
            self._held_by_waiting -= count
        if permit.lasts:
            self._kept -= count
        return count
