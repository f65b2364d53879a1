"""The heap permits of one request, from the first estimate to the bytes of its answer (PIP-442)."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Hashable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import structlog

from broker_core.access import Asker, note_held
from broker_core.errors import Cause, ListingFailed
from broker_core.listing import Selection
from broker_core.memory import (
    Estimate,
    Permit,
    PermitError,
    Permits,
    PermitTimeout,
    permits_refused,
    whole_count,
)
from broker_core.names import NamespaceName
from broker_core.plugin_api import DefaultLister
from broker_core.tracing import stage

__all__ = ["HeldPermit", "names_bytes", "sizes_of", "unknown_size"]

T = TypeVar("T")

_log = structlog.get_logger(__name__)

#: The share of the heap permits that a plugin's answer about a new namespace is taken to need.
_UNKNOWN_SHARE: Final = 4


class HeldPermit:
    """The heap permits of one request, from the estimate to the bytes of its answer.

    The request needs the largest reservation (:meth:`reserve`), and the leases on top of it (:meth:`grow`, a
    :class:`~broker_core.plugin_api.request_lease.RequestMemory`). Plugins call both: several times at once, also from
    work that goes on when the request is over, and no permit may be left over.
    """

    __slots__ = (
        "__weakref__",
        "_estimate",
        "_estimated",
        "_growing",
        "_is_over",
        "_kept",
        "_key",
        "_leased",
        "_peak",
        "_permit",
        "_permits",
        "_reserved",
        "_waiting",
        "loop",
        "waited",
    )

    def __init__(self, permits: Permits, estimate: Estimate, key: Hashable = None) -> None:
        self._permits = permits
        self._key = key  # whose demands wait in turns with the demands of others
        self._estimate = estimate
        self._estimated = 0
        self._permit: Permit | None = None
        self._reserved = 0  # in all, and granted
        self._leased = 0  # on top of it, and granted
        self._peak = 0  # the most that was asked for, whatever was granted
        #: Objects that may outlive the request, and the leased bytes that belong to each of them.
        self._kept: list[tuple[weakref.ref[Any], int]] = []
        self._is_over = False
        self._growing = asyncio.Lock()  # one update at a time: each replaces the permit
        self._waiting: asyncio.Future[None] | None = None  # done when no permits are wanted any more
        self.loop: asyncio.AbstractEventLoop | None = None
        #: Seconds for which the request waited for permits.
        self.waited = 0.0

    @property
    def count(self) -> int:
        return 0 if self._permit is None else self._permit.count

    async def __aenter__(self) -> None:
        """Begin with the estimate; any error in the block gives all permits up."""
        try:
            with stage("permits"):
                await self.acquire_estimate()
        except BaseException:
            self.give_up()
            raise

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            self.give_up()

    async def acquire_estimate(self) -> None:
        """Acquire permits for the peak of the last request like this (PIP-442)."""
        self.loop = asyncio.get_running_loop()
        note_held(self._key, self)
        size = None
        try:
            size = self._estimate.try_take()
            if size is None:
                size = await self._timed(self._estimate.take(self._permits.limits.permit_timeout))
            heap = self._permits.heap
            permit = heap.try_acquire(size)
            if permit is None:
                permit = await self._timed(heap.acquire(size, key=self._key))
        except PermitError as error:
            if size is not None and isinstance(error, PermitTimeout):
                self._estimate.refused()
            raise permits_refused("heap", error) from None
        self._permit = permit
        self._estimated = permit.count

    async def reserve(self, size: int) -> None:
        """Have at least ``size`` bytes of permits besides the leases, kept until the answer is gone.

        Raises :exc:`TypeError` or :exc:`ValueError` for what is no number of bytes, :exc:`ListingFailed` once the
        request is over, :exc:`TooManyRequests` if the permits cannot be had.
        """
        size = whole_count(size)
        if not self._is_granted(size):
            await self._hold(size, 0)

    def _is_granted(self, size: int) -> bool:
        """Whether so much was reserved before."""
        return size <= self._reserved and not self._is_over and not self._kept and self._permit is not None

    async def grow(self, size: int) -> None:
        """Acquire ``size`` additional bytes, until they are given back; raises as :meth:`reserve` does."""
        await self._hold(0, whole_count(size))

    @asynccontextmanager
    async def leased(self, size: int) -> AsyncIterator[None]:
        """A block with ``size`` additional bytes; raises as :meth:`reserve` does."""
        await self.grow(size)
        try:
            yield
        finally:
            self.give_back(size)

    def try_grow(self, size: int) -> bool:
        """Acquire ``size`` additional bytes if that takes no waiting; returns whether."""
        more = whole_count(size)
        self._let_go()
        permit = self._permit
        if permit is None or self._is_over:
            raise _over()
        if self._growing.locked():
            return False
        needed = self._needed(0, more)
        if needed > permit.count:
            grown = self._permits.heap.try_update(permit, needed)
            if grown is None:
                return False
            self._permit = grown
        self._granted(0, more)
        return True

    def give_back(self, size: int) -> None:
        """Give ``size`` of the leased bytes back."""
        self._leased -= size
        self._shrink()

    def keep_with(self, owner: Any, size: int) -> None:
        """Bind ``size`` of the leased bytes to ``owner``, until it is freed.

        If it outlives the request, they move to the budget of the snapshots; if that is full, they stay heap permits,
        and are ``owner``'s: the log says so once.
        """
        self._kept.append((weakref.ref(owner), size))

    def _needed(self, reserved: int, leased: int) -> int:
        return max(self._reserved, reserved) + self._leased + leased

    def _granted(self, reserved: int, leased: int) -> None:
        self._reserved = max(self._reserved, reserved)
        self._leased += leased
        self._peak = max(self._peak, self._reserved + self._leased)

    async def _hold(self, reserved: int, leased: int) -> None:
        self._let_go()
        permit = self._permit
        if permit is None or self._is_over:
            raise _over()
        self._peak = max(self._peak, self._needed(reserved, leased))
        if not self._growing.locked() and self._needed(reserved, leased) <= permit.count:
            self._granted(reserved, leased)
            return
        async with self._growing:
            # No other part of the request takes permits while this one waits; some may be given back.
            permit = self._permit
            if permit is None or self._is_over:
                raise _over()
            needed = self._needed(reserved, leased)
            if needed > permit.count:
                grown = self._permits.heap.try_update(permit, needed)
                if grown is None:
                    grown = await self._wait_for(permit, needed)
                if self._is_over:
                    grown.release()
                    raise _over()
                self._permit = grown
            self._granted(reserved, leased)
        self._shrink()

    async def _wait_for(self, permit: Permit, size: int) -> Permit:
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        try:
            with stage("permits"):
                more = self._permits.heap.update(permit, size, cancelled=waiting, key=self._key)
                return await self._timed(more)
        except PermitError as error:
            raise (_over() if self._is_over else permits_refused("heap", error)) from None
        finally:
            self._waiting = None

    async def _timed(self, permits: Awaitable[T]) -> T:
        began = time.perf_counter()
        try:
            return await permits
        finally:
            self.waited += time.perf_counter() - began

    def _shrink(self) -> None:
        """Give unneeded permits back, but keep as many as there were at the beginning."""
        permit = self._permit
        if permit is None or self._is_over or self._growing.locked():
            return
        needed = max(self._reserved + self._leased, self._estimated)
        if needed < permit.count:
            self._permit = self._permits.heap.try_update(permit, needed)

    def _let_go(self) -> None:
        """Give back the permits of objects that have ended."""
        if self._kept:
            ended = sum(size for owner, size in self._kept if owner() is None)
            self._kept = [each for each in self._kept if each[0]() is not None]
            self.give_back(ended)

    def _move(self) -> None:
        """Leave the permits of objects that outlive the request to these objects."""
        leases = self._permits.leases
        for reference, size in self._kept:
            owner = reference()
            if owner is None or owner in leases:
                continue
            snapshots = self._permits.snapshots
            permit = snapshots.try_acquire(size) if snapshots.fits(size) else None
            if permit is None and self._permit is not None:
                permit = self._permits.heap.keep(self._permit, size)
                self._overflowed(size)
            if permit is not None:
                leases.hold(owner, permit)
        self._kept.clear()

    def _overflowed(self, size: int) -> None:
        """Log once that kept objects leave the heap less room."""
        if not self._permits.overflow_logged:
            self._permits.overflow_logged = True
            _log.warning(
                "what a plugin keeps of other listers does not fit into limits.snapshots and stays heap permits",
                bytes=size,
                snapshots=self._permits.snapshots.maximum,
            )

    def settle(self, size: int, *, made: bool = True) -> None:
        """Keep permits for the ``size`` bytes of the answer, and give the surplus back.

        The next request like this one asks for its peak; ``made`` false: no listing was made for it, so there is
        nothing to learn.
        """
        if made:
            self._estimate.learned(max(self._peak, size))
        else:
            self._estimate.nothing_made()
        if self._kept:
            self._move()
        if self._permit is not None and size < self._permit.count:
            self._permit = self._permits.heap.try_update(self._permit, size)

    def hand_over(self) -> Permit | None:
        """Hand the permits over to the caller, to release them."""
        self._end()
        permit, self._permit = self._permit, None
        if permit is not None:
            note_held(self._key, permit)
        return permit

    def release(self, size: int = 0) -> None:
        """End the request, which holds nothing; the next one like it may need ``size`` bytes."""
        self.settle(size)
        permit = self.hand_over()
        if permit is not None:
            permit.release()

    def give_up(self) -> None:
        """Release everything after a failure, and let the next request find out the size."""
        self._end()
        self._estimate.failed()
        self._move()
        if self._permit is not None:
            self._permit.release()
            self._permit = None

    def _end(self) -> None:
        self._is_over = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def _over() -> ListingFailed:
    return ListingFailed("This request is over: it cannot reserve memory any more", cause=Cause.PLUGIN)


def names_bytes(selection: Selection) -> int:
    """The bytes of a column of the names while it is made: the names, and their offsets twice."""
    return selection.fields_size + 16 * len(selection)


def sizes_of(lister: DefaultLister, namespace: NamespaceName, asker: Asker) -> Hashable:
    """The key by which sizes of listings are learned: a namespace, and the principal if brokers list for principals."""
    return namespace, (asker.role, asker.original_principal) if "principal" in lister.depends_on else None


def unknown_size(permits: Permits) -> int:
    """The bytes that a plugin's answer is taken to need before the first one is known.

    An answer is in memory before it can be counted, so few are asked for at a time while their size is unknown.
    """
    return permits.heap.maximum // _UNKNOWN_SHARE
