"""What a connection sends: frames in order, bounded by permits and by the time that a peer may take to read them.

An asyncio transport takes all that it is given and copies what the socket does not take at once. So it is given little:
a large answer goes out in windows of a mebibyte, each only when the one before has left. What may wait in a transport
is covered by direct permits (PIP-442), held until the bytes have gone to the kernel:

- A *small* answer (up to 64 KiB) takes permits for its size from the reserve, and never queues behind large ones.
- A *large* answer takes permits for one window, for the whole time of its writing.
- Other frames (PONG, errors) are tiny; a peer that does not read them has its own requests read no more.

A window that does not leave within ``write_timeout`` closes the connection: the peer has stopped reading.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from broker_core.errors import TooManyRequests
from broker_core.permits import Permit, PermitBudget, PermitError, Permits, PermitTimeout

__all__ = ["WINDOW", "Outbox"]

#: Bytes of an answer that are handed to the transport at a time.
WINDOW: Final = 1024 * 1024
#: Bytes of small frames that may wait for a peer before its requests are no longer read.
_BACKLOG: Final = 256 * 1024


class Outbox:
    """The sending side of one connection; made when it is open, told of its transport's flow control."""

    __slots__ = (
        "_backlog",
        "_backlog_bytes",
        "_drained",
        "_in_frame",
        "_large",
        "_loop",
        "_on_stalled",
        "_paused",
        "_permits",
        "_timer",
        "_transport",
        "_unsent",
        "_write_timeout",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        permits: Permits,
        write_timeout: float,
        on_stalled: Callable[[], None],
    ) -> None:
        # With both limits at 0 the transport says when anything waits in it, and when all of it has left.
        transport.set_write_buffer_limits(high=0, low=0)
        self._transport = transport
        self._permits = permits
        self._write_timeout = write_timeout
        self._on_stalled = on_stalled
        self._loop = asyncio.get_running_loop()
        self._paused = False
        self._drained: asyncio.Future[None] | None = None
        self._large = asyncio.Lock()
        self._in_frame = False
        self._backlog: deque[tuple[bytes, Permit | None]] = deque()
        self._backlog_bytes = 0
        self._unsent: list[Permit] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether everything has left."""
        return not (self._paused or self._backlog or self._in_frame or self._large.locked())

    def send(self, frame: bytes, permit: Permit | None = None) -> None:
        """Send one small frame, after what is on its way; ``permit`` is released when it has left."""
        if self._transport.is_closing():
            if permit is not None:
                permit.release()
            return
        if self._paused or self._in_frame:
            self._backlog.append((frame, permit))
            self._backlog_bytes += len(frame)
            if self._backlog_bytes > _BACKLOG:
                self._transport.pause_reading()
            return
        self._write(frame, permit)

    def send_answer_now(self, head: bytes, body: bytes | memoryview, tail: bytes) -> bool:
        """Send a small answer if permits are to be had without waiting; else nothing happens and it is ``False``."""
        size = len(head) + len(body) + len(tail)
        if size > self._permits.limits.small_answer:
            return False
        permit = self._permits.reserve.try_acquire(size)
        if permit is None:
            return False
        self.send(b"".join((head, body, tail)), permit)
        return True

    async def send_answer(self, head: bytes, body: memoryview, tail: bytes, deadline: float) -> None:
        """Send an answer, small or large; returns when its last bytes are with the transport or the peer is gone.

        ``deadline`` (loop time) bounds the waiting for the turn to write and for permits. Raises
        :exc:`~broker_core.errors.TooManyRequests`, and has sent nothing then.
        """
        size = len(head) + len(body) + len(tail)
        if size <= self._permits.limits.small_answer:
            self.send(b"".join((head, body, tail)), await self._permit(self._permits.reserve, size, deadline))
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._large.acquire()  # one at a time, and those that wait hold no permits
        except TimeoutError:
            raise TooManyRequests("The answer could not be sent in time", reason="time") from None
        try:
            permit = await self._permit(self._permits.direct, min(size, WINDOW), deadline)
            try:
                await self._write_windows(head, body, tail)
            finally:
                permit.release()
        finally:
            self._large.release()

    async def _permit(self, budget: PermitBudget, size: int, deadline: float) -> Permit:
        left = max(0.0, min(self._permits.limits.timeout, deadline - self._loop.time()))
        try:
            return budget.try_acquire(size) or await budget.acquire(size, timeout=left)
        except PermitError as error:
            reason = "direct_timeout" if isinstance(error, PermitTimeout) else "direct"
            raise TooManyRequests("Cannot acquire permits for direct memory", reason=reason) from None

    async def _write_windows(self, head: bytes, body: memoryview, tail: bytes) -> None:
        self._in_frame = True  # from here on other frames wait, and what is begun must be ended
        try:
            await self._room()
            self._write(head)
            for start in range(0, len(body), WINDOW):
                await self._room()
                if self._transport.is_closing():
                    return
                self._transport.write(body[start : start + WINDOW])
            await self._room()
            self._write(tail)
            await self._room()
        except BaseException:
            self._transport.abort()  # half a frame is sent: nothing that follows could be understood
            raise
        finally:
            self._in_frame = False
            self._flush()

    async def _room(self) -> None:
        """Wait until all that was written has left, or the connection is over."""
        while self._paused and not self._transport.is_closing():
            if self._drained is None:
                self._drained = self._loop.create_future()
            await self._drained

    def _write(self, frame: bytes, permit: Permit | None = None) -> None:
        self._transport.write(frame)
        if permit is not None:
            if self._paused:  # it waits in the transport
                self._unsent.append(permit)
            else:
                permit.release()

    def _flush(self) -> None:
        """Send what came up meanwhile, as far as the peer takes it."""
        while self._backlog and not self._paused and not self._in_frame:
            frame, permit = self._backlog.popleft()
            self._backlog_bytes -= len(frame)
            self._write(frame, permit)
        if self._backlog_bytes <= _BACKLOG and not self._transport.is_closing():
            self._transport.resume_reading()

    def paused(self) -> None:
        """The transport holds bytes that the peer has not taken."""
        self._paused = True
        if self._timer is None:
            self._timer = self._loop.call_later(self._write_timeout, self._on_stalled)

    def resumed(self) -> None:
        """All bytes have left the transport."""
        self._paused = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._release_unsent()
        if self._drained is not None:
            if not self._drained.done():
                self._drained.set_result(None)
            self._drained = None
        elif not self._in_frame:
            self._flush()

    def closed(self) -> None:
        """The connection is over: whatever waits is given up and its permits return."""
        self._paused = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._release_unsent()
        for _, permit in self._backlog:
            if permit is not None:
                permit.release()
        self._backlog.clear()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def _release_unsent(self) -> None:
        unsent, self._unsent = self._unsent, []
        for permit in unsent:
            permit.release()
