"""Memory that a plugin takes for a request, on top of all that the request holds otherwise.

A lease is made by ``request.lease(size)`` and entered: ``async with`` on an event loop, ``with`` in a thread. It is
given back when the block ends, and with the request at the latest.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias

from broker_core.concurrency import running_loop
from broker_core.memory import whole_count

__all__ = [
    "UNCOUNTED",
    "Lease",
    "PausedMemory",
    "Pausing",
    "RequestMemory",
    "paused_call",
]

#: Wraps a function that a plugin awaits, so that its time is not the plugin's.
Pausing: TypeAlias = Callable[[Callable[..., Awaitable[Any]]], Callable[..., Awaitable[Any]]]


class RequestMemory(Protocol):
    """The memory that leases draw on. All methods are for the event loop :attr:`loop`; without one, for any thread."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The broker's event loop; ``None``: memory is not counted."""

    async def grow(self, size: int) -> None:
        """Wait for ``size`` more bytes."""

    def try_grow(self, size: int) -> bool:
        """Take ``size`` more bytes if that takes no waiting; returns whether."""

    def give_back(self, size: int) -> None:
        """Give ``size`` bytes back."""


class _Uncounted:
    """Memory that is not counted, as in a test of a plugin that builds its own request."""

    loop: Final = None

    async def grow(self, size: int) -> None:
        pass

    def try_grow(self, size: int) -> bool:  # noqa: ARG002  # the protocol's
        return True

    def give_back(self, size: int) -> None:
        pass


#: Stands in if memory is not counted.
UNCOUNTED: Final[RequestMemory] = _Uncounted()


class PausedMemory:
    """A request's memory, as one call of a plugin has it: waiting for more is not the plugin's time."""

    __slots__ = ("_memory", "_pausing")

    def __init__(
        self,
        memory: RequestMemory,
        pausing: Pausing,
    ) -> None:
        self._memory = memory
        self._pausing = pausing

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        return self._memory.loop

    async def grow(self, size: int) -> None:
        await paused_call(self._pausing, self._memory.grow, size)

    def try_grow(self, size: int) -> bool:
        return self._memory.try_grow(size)

    def give_back(self, size: int) -> None:
        self._memory.give_back(size)


async def paused_call(pausing: Pausing, function: Callable[..., Awaitable[Any]], *given: object) -> Any:
    """The result of a function of the broker; waiting for it is not the plugin's time."""
    return await pausing(function)(*given)


class _LeaseState(enum.Enum):
    NEW = "was not entered: write `async with request.lease(size) as lease:`"
    OPEN = "is open"
    OVER = "is over: its block has ended"


class Lease:
    """Heap permits of :attr:`size` bytes, on top of the request's other memory. May be used from any thread.

    ``async with request.lease(size) as lease`` waits for them; in a thread ``with`` does. Growing and entering raise
    :exc:`~broker_core.errors.TooManyRequests` when permits do not come in time (let it pass), :exc:`TypeError` or
    :exc:`ValueError` for what is no number of bytes, :exc:`RuntimeError` for a lease that is not open, and
    :exc:`~broker_core.errors.ListingFailed` once the request is over. The waiting is not the plugin's time.
    """

    __slots__ = ("_memory", "_requested", "_state", "size")

    def __init__(self, memory: RequestMemory, size: int) -> None:
        self._memory = memory
        self._requested = whole_count(size)
        self._state = _LeaseState.NEW
        #: Bytes that it has now.
        self.size = 0

    async def grow(self, more: int) -> None:
        """Wait for ``more`` bytes on top of the lease's bytes."""
        self._check_open()
        await self._anywhere(whole_count(more))

    def try_grow(self, more: int) -> bool:
        """Take ``more`` bytes if they are free now; returns whether. In a thread it waits for the event loop's next
        turn.
        """
        self._check_open()
        count = whole_count(more)
        loop = self._memory.loop
        if loop is None or running_loop() is loop:
            return self._try_here(count)
        done: Future[bool] = Future()

        def attempt() -> None:
            try:
                done.set_result(self._try_here(count))
            except BaseException as error:  # noqa: BLE001 - the waiting caller gets it
                done.set_exception(error)

        loop.call_soon_threadsafe(attempt)
        return done.result()

    def grow_blocking(self, more: int) -> None:
        """:meth:`grow` for a plain function, in a thread. Raises :exc:`RuntimeError` on an event loop."""
        self._check_open()
        self._blocking(whole_count(more), "await lease.grow(size)")

    async def __aenter__(self) -> Self:
        self._enter()
        try:
            await self._anywhere(self._requested)
        except BaseException:
            self._state = _LeaseState.OVER
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __enter__(self) -> Self:
        self._enter()
        try:
            self._blocking(self._requested, "write `async with`")
        except BaseException:
            self._state = _LeaseState.OVER
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __repr__(self) -> str:
        return f"<Lease of {self.size} bytes, which {self._state.value}>"

    def _enter(self) -> None:
        if self._state is not _LeaseState.NEW:
            raise RuntimeError("a lease is entered once: ask for another one by request.lease(size)")
        self._state = _LeaseState.OPEN

    def _check_open(self) -> None:
        if self._state is not _LeaseState.OPEN:
            raise RuntimeError(f"this lease {self._state.value}")

    async def _anywhere(self, more: int) -> None:
        loop = self._memory.loop
        if loop is None or asyncio.get_running_loop() is loop:
            await self._grow_here(more)
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._grow_here(more), loop))

    def _blocking(self, more: int, instead: str) -> None:
        if running_loop() is not None:
            raise RuntimeError(f"this would block the event loop: {instead}")
        loop = self._memory.loop
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._grow_here(more), loop).result()
        else:
            self._try_here(more)

    # -- on the broker's event loop

    async def _grow_here(self, more: int) -> None:
        await self._memory.grow(more)
        self._grown(more)

    def _try_here(self, more: int) -> bool:
        if not self._memory.try_grow(more):
            return False
        self._grown(more)
        return True

    def _grown(self, more: int) -> None:
        if self._state is not _LeaseState.OPEN:  # its block ended meanwhile
            self._memory.give_back(more)
            raise RuntimeError(f"this lease {self._state.value}")
        self.size += more

    def _close(self) -> None:
        self._state = _LeaseState.OVER
        loop = self._memory.loop
        if loop is None or running_loop() is loop:
            self._give_back()
        else:
            with suppress(RuntimeError):  # the loop is closed, and with it the request
                loop.call_soon_threadsafe(self._give_back)

    def _give_back(self) -> None:
        size, self.size = self.size, 0
        if size:
            self._memory.give_back(size)
