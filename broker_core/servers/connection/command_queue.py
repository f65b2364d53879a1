"""The receiving side of a connection: frames cut into commands, handled in order, for short times.

A chunk of a socket may hold thousands of commands. They are handled for a few milliseconds at a time, in turns with the
commands of other connections, and not at all while answers wait for a peer that does not read them; meanwhile nothing
more is read, so that TCP makes the peer wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from broker_core.concurrency import loop_turn
from broker_core.servers.connection.command_handler import CommandSplitter

__all__ = ["CommandQueue"]

#: Seconds that the commands of one chunk may take until everybody else has had a turn.
_SLICE: Final = 0.002


class CommandQueue:
    """The receiving side of one connection.

    ``splitter`` cuts received bytes into commands. ``handle`` gets each command; ``failed`` gets the error of the
    splitter or of ``handle`` that ended the stream. Several commands are handled between ``begin`` and ``end``.
    ``is_crowded`` says that nothing more is to be handled until :meth:`go_on`; ``count`` gets the change of
    :attr:`size`.
    """

    __slots__ = (
        "_begin",
        "_count",
        "_due",
        "_end",
        "_failed",
        "_handle",
        "_is_crowded",
        "_loop",
        "_splitter",
        "_transport",
        "_turn",
        "_waiting",
        "_waiting_bytes",
        "size",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        splitter: CommandSplitter,
        *,
        handle: Callable[[bytes], None],
        failed: Callable[[Exception], None],
        is_crowded: Callable[[], bool],
        begin: Callable[[], None],
        end: Callable[[], None],
        count: Callable[[int], None],
    ) -> None:
        self._transport = transport
        self._splitter = splitter
        self._handle = handle
        self._failed = failed
        self._is_crowded = is_crowded
        self._begin = begin
        self._end = end
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._turn = loop_turn()
        self._due = False  # goes on in the next turn of the loop that has time for it
        self.size = 0  # bytes held: of an incomplete frame, and of commands that wait

    def feed(self, data: bytes) -> None:
        """Take received bytes, and handle whole commands."""
        try:
            received = self._splitter.feed(data)
        except Exception as error:  # noqa: BLE001  # bytes that are no frame, or worse
            self._failed(error)
            return
        if len(received) == 1 and not (self._waiting or self._is_crowded()):
            self._handle_one(received[0])  # a client that waits for its answer
        elif received:
            self._waiting.extend(received)
            self._waiting_bytes += sum(map(len, received))
            self._work()
        if self._splitter.buffered or self._waiting or self.size:
            self._measure()

    @property
    def unfinished(self) -> int:
        """Bytes held of a frame that is not whole."""
        return self._splitter.buffered

    def go_on(self) -> None:
        """Handle waiting commands, now that there is room for answers again."""
        if self._waiting and not self._due:
            self._work()
            self._measure()

    def close(self) -> None:
        """Handle nothing more: the connection is over."""
        self._waiting.clear()
        self._waiting_bytes = 0
        self._count(-self.size)
        self.size = 0

    def _work(self) -> None:
        if self._due:
            return
        self._begin()
        self._turn.begin_received()
        try:
            self._handle_in_slices()
        finally:
            self._turn.end_received()
            self._end()

    def _handle_in_slices(self) -> None:
        waiting, transport = self._waiting, self._transport
        until = self._loop.time() + _SLICE
        while waiting and not transport.is_closing():
            if self._is_crowded():
                transport.pause_reading()
                return
            command = waiting.popleft()
            self._waiting_bytes -= len(command)
            self._handle_one(command)
            if waiting and (self._loop.time() >= until or not self._turn.has_time()):
                transport.pause_reading()
                self._due = True
                self._turn.call_next(self._go_on_later)
                return
        transport.resume_reading()

    def _go_on_later(self) -> None:
        self._due = False
        self.go_on()

    def _handle_one(self, command: bytes) -> None:
        try:
            self._handle(command)
        except Exception as error:  # noqa: BLE001  # bytes that are no command, or worse
            self._failed(error)

    def _measure(self) -> None:
        size = self._splitter.buffered + self._waiting_bytes
        if size != self.size:
            change, self.size = size - self.size, size
            self._count(change)
