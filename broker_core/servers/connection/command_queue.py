"""What a connection receives: frames cut into commands, handled in order, no more at a time than others can wait for.

A chunk of a socket may hold thousands of commands. They are handled for a few milliseconds at a time, in turns with
those of other connections, and not at all while answers wait for a peer that does not read them; meanwhile nothing more
is read, so that TCP makes the peer wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from broker_core.concurrency.loop_turn import loop_turn
from broker_core.wire.pulsar import LARGE, BaseCommand, FrameDecoder, TooManyElements, commands, decode_large

__all__ = ["CommandQueue"]

#: Seconds that the commands of one chunk may take until everybody else has had a turn.
_SLICE: Final = 0.002


class CommandQueue:
    """The receiving side of one connection.

    ``handle`` gets each command; ``bomb`` one with so many repeated parts (``max_elements``) that decoding it would
    hurt, with its request id alone; ``failed`` what ended the stream, a
    :exc:`~broker_core.wire.pulsar.frames.FrameError` or an error of ``handle``. ``is_crowded`` says that nothing
    more is to be handled until :meth:`go_on`; ``count`` gets the change of :attr:`size`.
    """

    __slots__ = (
        "_bomb",
        "_count",
        "_decoder",
        "_due",
        "_failed",
        "_handle",
        "_is_crowded",
        "_loop",
        "_max_elements",
        "_transport",
        "_turn",
        "_waiting",
        "_waiting_bytes",
        "command_size",
        "size",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        *,
        max_frame: int,
        max_elements: int,
        handle: Callable[[BaseCommand], None],
        bomb: Callable[[TooManyElements], None],
        failed: Callable[[Exception], None],
        is_crowded: Callable[[], bool],
        count: Callable[[int], None],
    ) -> None:
        self._transport = transport
        self._decoder = FrameDecoder(max_frame)
        self._max_elements = max_elements
        self._handle = handle
        self._bomb = bomb
        self._failed = failed
        self._is_crowded = is_crowded
        self._count = count
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._turn = loop_turn()
        self._due = False  # goes on in the next turn of the loop that has time for it
        self.command_size = 0  # bytes of the command that is being handled
        self.size = 0  # bytes held: of an incomplete frame, and of commands that wait

    def feed(self, data: bytes) -> None:
        """Take what the socket had, and handle what is whole."""
        try:
            received = self._decoder.feed(data)
        except Exception as error:  # noqa: BLE001  # a FrameError, or worse
            self._failed(error)
            return
        if len(received) == 1 and not (self._waiting or self._is_crowded()):
            self._handle_one(received[0])  # a client that waits for its answer
        elif received:
            self._waiting.extend(received)
            self._waiting_bytes += sum(map(len, received))
            self._work()
        if self._decoder.buffered or self._waiting or self.size:
            self._measure()

    def go_on(self) -> None:
        """Handle what waits: there is room for answers again."""
        if self._waiting and not self._due:
            self._work()
            self._measure()

    def close(self) -> None:
        """The connection is over: nothing more is handled."""
        self._waiting.clear()
        self._waiting_bytes = 0
        self._count(-self.size)
        self.size = 0

    def _work(self) -> None:
        if self._due:
            return
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
        self.command_size = len(command)
        try:
            if len(command) <= LARGE:
                self._handle(commands.decode(command))
            else:
                self._handle(decode_large(command, self._max_elements))
        except TooManyElements as bomb:
            self._bomb(bomb)
        except Exception as error:  # noqa: BLE001  # a FrameError, or worse
            self._failed(error)

    def _measure(self) -> None:
        size = self._decoder.buffered + self._waiting_bytes
        if size != self.size:
            change, self.size = size - self.size, size
            self._count(change)
