"""Estimates of the memory of a listing: how many heap permits a request asks for before it begins.

An estimate is the peak of an earlier request with the same question. A new question takes the recent peak of its
namespace. In a new namespace, one request runs with the recent peak of other namespaces (at least the size that its
caller says), and the namespace's other requests wait for its result. If it fails, the next one of them runs.

An ``unchanged`` answer makes no listing, so it teaches no size: each such answer doubles the number of requests that
may run without an estimate. If the permits for an estimate could not be acquired in time, the next request asks for
fewer; the true size would never be learned otherwise. Before the first size is learned, requests run for a few
namespaces at a time.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

from broker_core.memory.permit_errors import PermitTimeout

__all__ = ["INITIAL_SIZE", "Estimate", "Estimates"]

#: Bytes that an answer is taken to need before one of its namespace was seen.
INITIAL_SIZE: Final = 10 * 1024

_MOST_UNKNOWN: Final = 1 << 16
#: Namespaces that are asked about at a time before anything is known of any; they may hang, so that another one follows
#: whenever so many seconds have passed.
_AT_FIRST: Final = 4
_ANOTHER_AFTER: Final = 1.0
_EVICTION_TRIES: Final = 8


class _NamespaceSizes:
    """The known sizes of the questions about one namespace, or about all together."""

    __slots__ = ("may_run", "peak", "running", "waiting")

    def __init__(self, may_run: int = 1) -> None:
        self.peak: int | None = None  # of the latest questions, the largest with the greatest weight
        self.running = 0  # requests that run without knowing
        self.may_run = may_run
        self.waiting: deque[asyncio.Future[None]] = deque()  # done: look again

    @property
    def in_use(self) -> bool:
        return bool(self.running or self.waiting)

    @property
    def is_full(self) -> bool:
        """Whether one more request without an estimate has to wait for the others."""
        return self.peak is None and self.running >= self.may_run

    def raise_too_large(self) -> None:
        if self.peak is not None:
            self.peak = self.peak * 3 // 4

    def learned(self, peak: int) -> None:
        # A large question after many small ones is an exception, a small one after a large one may be, too.
        self.peak = peak if self.peak is None else max(peak, self.peak * 3 // 4)

    def wake(self) -> None:
        """Wake the waiting requests: all of them if the size is known, else as many as may run."""
        places = len(self.waiting) if self.peak is not None else self.may_run - self.running
        while places > 0 and self.waiting:
            waiting = self.waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                places -= 1


class Estimate:
    """The estimate of one request. :meth:`try_take` or :meth:`take` first; then one of the three endings, once."""

    __slots__ = ("_at_least", "_estimates", "_is_running", "_key", "_namespace", "_unknown")

    def __init__(self, estimates: Estimates, namespace: _NamespaceSizes, key: int, at_least: int) -> None:
        self._estimates = estimates
        self._namespace = namespace
        self._key = key
        self._at_least = at_least
        self._unknown = False  # it runs without an estimate: its namespace's others may wait for its result
        self._is_running = False  # and counts among the requests of all namespaces

    def try_take(self) -> int | None:
        """The bytes to ask permits for, or ``None`` while another request finds them out."""
        namespace = self._namespace
        known = self._estimates.peak(self._key)
        if known is None:
            known = namespace.peak
        if known is None and not (
            namespace.is_full or namespace.waiting or self._estimates.everywhere.is_full
        ):
            self._take_place()
            return self._run_unknown()
        return known

    async def take(self, timeout: float | None = None) -> int:
        """The bytes to ask permits for; waits for a request that finds them out.

        Raises :exc:`~broker_core.memory.permit_errors.PermitTimeout` after ``timeout`` seconds of waiting.
        """
        taken = self.try_take()
        if taken is not None:
            return taken
        namespace = self._namespace
        try:
            async with asyncio.timeout(timeout):
                if namespace.waiting:
                    await self._woken(namespace)
                while namespace.is_full:
                    await self._woken(namespace)
                if namespace.peak is not None:
                    return namespace.peak
                self._take_place()
                await self._first_of_all()
                return self._run_unknown()
        except TimeoutError:
            raise PermitTimeout from None

    async def _first_of_all(self) -> None:
        everywhere = self._estimates.everywhere
        now = asyncio.get_running_loop().time
        while everywhere.is_full:
            try:
                async with asyncio.timeout(_ANOTHER_AFTER):
                    await self._woken(everywhere)
            except TimeoutError:
                if now() - self._estimates.followed_at >= _ANOTHER_AFTER:
                    self._estimates.followed_at = now()
                    return

    async def _woken(self, namespace: _NamespaceSizes) -> None:
        waiting = asyncio.get_running_loop().create_future()
        namespace.waiting.append(waiting)
        try:
            await waiting
        except BaseException:
            if waiting in namespace.waiting:
                namespace.waiting.remove(waiting)
            else:
                namespace.wake()  # its turn had come: it is the next one's
            raise

    def _take_place(self) -> None:
        """Let the other requests about this namespace wait from now on."""
        self._namespace.running += 1
        self._unknown = True

    def _run_unknown(self) -> int:
        everywhere = self._estimates.everywhere
        everywhere.running += 1
        self._is_running = True
        return max(INITIAL_SIZE, self._at_least, everywhere.peak or 0)

    def learned(self, peak: int) -> None:
        """Note that the request took ``peak`` bytes at the most."""
        self._estimates.learned(self._key, peak)
        self._namespace.learned(peak)
        self._estimates.everywhere.learned(peak)
        self._ended()
        self._namespace.wake()

    def nothing_made(self) -> None:
        """Note that the request was answered without making a listing."""
        if self._unknown:
            for each in (self._namespace, self._estimates.everywhere):
                each.may_run = min(2 * each.may_run, _MOST_UNKNOWN)
            self._ended()
            self._namespace.wake()

    def refused(self) -> None:
        """Note that the permits did not come in time: if the estimate came from other questions, the next one asks for
        less.
        """
        if self._estimates.peak(self._key) is None:
            (
                self._namespace if self._namespace.peak is not None else self._estimates.everywhere
            ).raise_too_large()

    def failed(self) -> None:
        """Note that the request was not answered; no effect if it has ended already."""
        if self._unknown:
            self._namespace.may_run = 1
            self._ended()
            self._namespace.wake()

    def _ended(self) -> None:
        if self._unknown:
            self._unknown = False
            self._namespace.running -= 1
        if self._is_running:
            self._is_running = False
            self._estimates.everywhere.running -= 1
            self._estimates.everywhere.wake()


class Estimates:
    """Learned sizes of the ``max_entries`` questions and namespaces that were asked last.

    A key must hold all that the answer's size depends on: namespace, mode, pattern, properties. Only its hash is kept,
    so that long patterns and properties of clients take no memory here; the hash of a string is keyed by a secret of
    the process, and two questions that shared one would share an estimate, nothing else.
    """

    def __init__(self, max_entries: int = 10_000) -> None:
        self.max_entries = max_entries
        self._peaks: OrderedDict[int, int] = OrderedDict()
        self._namespaces: OrderedDict[Hashable, _NamespaceSizes] = OrderedDict()
        self.everywhere = _NamespaceSizes(_AT_FIRST)
        self.followed_at = 0.0  # loop time of the last request that had waited in vain for others

    def of(self, namespace: Hashable, key: Hashable, at_least: int = INITIAL_SIZE) -> Estimate:
        """The estimate for one request of the question ``key`` about ``namespace``: ``at_least`` if both are new."""
        known = self._namespaces.get(namespace)
        if known is None:
            known = self._namespaces[namespace] = _NamespaceSizes()
            self._evict(namespace)
        else:
            self._namespaces.move_to_end(namespace)
        return Estimate(self, known, hash(key), at_least)

    def peak(self, key: int) -> int | None:
        """The bytes that the question with this hash took the last time."""
        peak = self._peaks.get(key)
        if peak is not None:
            self._peaks.move_to_end(key)
        return peak

    def learned(self, key: int, peak: int) -> None:
        """Remember the bytes that the question with this hash took."""
        self._peaks[key] = peak
        self._peaks.move_to_end(key)
        if len(self._peaks) > self.max_entries:
            self._peaks.popitem(last=False)

    def _evict(self, newest: Hashable) -> None:
        """Drop the namespaces whose last question is oldest, but none with a request under way: others wait for it.

        A namespace with a request goes to the end of the line; after a few tries the rest is left to the next call.
        """
        for _ in range(_EVICTION_TRIES):
            namespace, known = next(iter(self._namespaces.items()))
            if namespace == newest or len(self._namespaces) <= self.max_entries:
                return
            if known.in_use:
                self._namespaces.move_to_end(namespace)
            else:
                del self._namespaces[namespace]
