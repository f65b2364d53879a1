"""The sending side of a connection: frames in order, bounded by permits and by the time that a peer may take to read.

An asyncio transport takes all data and copies what the socket does not take at once. So it gets little: a large answer
goes out in pieces, each only when the one before has left; their size is the reader's pace
(:mod:`~broker_core.servers.connection.large_answers`). Bytes that may wait in a transport are covered by direct permits
(PIP-442), held until the bytes have gone to the kernel:

- A *small* answer (up to 64 KiB) takes permits for its size from the reserve, and never queues behind large ones for
  them. The answers to questions that came together are written together. A peer for which more than :data:`CROWDED`
  bytes wait gets no more of them: it cannot take the whole reserve.
- A frame that nobody asked for, such as an update of a watcher, is *pushed*: it goes to a peer for which less than
  :data:`PUSHED` bytes wait, since many peers that read nothing must leave room for the others.
- A *large* answer waits for permits for the least piece only, one at a time on a connection
  (:mod:`~broker_core.servers.connection.large_answers`).
- Other frames (PONG, errors) are tiny; the requests of a peer that does not read them are not handled any more.

Two times close a connection whose peer does not read: ``write_timeout`` for one piece (longer if it has read a large
answer faster than ``min_rate`` so far), and for a large answer as a whole the time that it takes at ``min_rate``
besides.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from broker_core.errors import Cause, TooManyRequests
from broker_core.listing import FieldsReader
from broker_core.memory import SMALL_ANSWER, Permit, PermitBudget, Permits
from broker_core.servers.connection.large_answers import LEAST_PIECE, LargeAnswer, LargeAnswers, ReaderPace

__all__ = ["CROWDED", "PUSHED", "AnswerWriter", "OutgoingAnswer"]

#: Bytes of small frames that may wait for a peer; with more, nothing is done for it until it has read some.
CROWDED: Final = 128 * 1024
#: Bytes that may wait for a peer, besides one frame in its transport, with one that is pushed.
PUSHED: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class OutgoingAnswer:
    """The frame of an answer in three parts. ``deadline`` (loop time) bounds how long it waits for its turn; for
    ``rest`` seconds after it, nothing more of the client is handled.
    """

    head: bytes
    body: FieldsReader | bytes | memoryview
    tail: bytes
    deadline: float
    rest: float = 0.0

    @property
    def size(self) -> int:
        """Bytes of the frame."""
        body = self.body.left if isinstance(self.body, FieldsReader) else len(self.body)
        return len(self.head) + body + len(self.tail)

    def joined(self) -> bytes:
        """The whole frame: of a small answer."""
        pieces = _pieces(self.body) if isinstance(self.body, FieldsReader) else (self.body,)
        return b"".join((self.head, *pieces, self.tail))


class AnswerWriter:
    """The sending side of one connection; made when it is open, with callbacks for its transport's flow control.

    A large answer is one of ``answers``; ``cut`` ends it. ``min_rate`` is in bytes a second (0: any). ``on_stalled`` is
    called when the peer has stopped reading, or reads too slowly, with the seconds that it had; ``on_room`` when it is
    no longer crowded, or has read all that waited when a frame was pushed. Both, and all writing that follows from flow
    control, come from the event loop, never from within a call of the transport: that would end the connection twice if
    a write failed there.
    """

    __slots__ = (
        "_answers",
        "_backlog",
        "_backlog_bytes",
        "_cut",
        "_flushing",
        "_gathered",
        "_gathered_bytes",
        "_has_pushed",
        "_in_frame",
        "_is_gathering",
        "_large",
        "_loop",
        "_min_rate",
        "_on_room",
        "_on_stalled",
        "_pace",
        "_paused",
        "_permits",
        "_small",
        "_timer",
        "_transport",
        "_unsent",
        "_waiting",
        "_write_timeout",
        "is_crowded",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        permits: Permits,
        answers: LargeAnswers,
        write_timeout: float,
        *,
        min_rate: int = 0,
        cut: Callable[[], None],
        on_stalled: Callable[[float], None],
        on_room: Callable[[], None],
    ) -> None:
        # With both limits at 0 the transport says when anything waits in it, and when all of it has left.
        transport.set_write_buffer_limits(high=0, low=0)
        self._transport = transport
        self._permits = permits
        self._answers = answers
        self._cut = cut
        self._write_timeout = write_timeout
        self._min_rate = min_rate
        self._on_stalled = on_stalled
        self._on_room = on_room
        self._loop = asyncio.get_running_loop()
        self._paused = False  # bytes wait in the transport
        self._in_frame = False  # a large answer is being written
        self._pace: ReaderPace | None = None  # of that answer
        self._large = asyncio.Lock()
        self._small = asyncio.Lock()
        self._backlog: deque[tuple[bytes, Permit | None]] = deque()
        self._backlog_bytes = 0
        self.is_crowded = False  # more than CROWDED bytes wait in the backlog
        self._has_pushed = False  # waiting bytes, which may be in the way of a pushed frame
        self._is_gathering = False
        self._gathered: list[bytes] = []  # small answers that are written with the next ones
        self._gathered_bytes = 0
        self._unsent: list[Permit] = []  # of small answers that wait in the transport
        self._waiting: list[asyncio.Future[None]] = []  # of callers that wait for any change of this state
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Handle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether everything has left."""
        return not (self._paused or self._backlog or self._large.locked() or self._small.locked())

    @property
    def waiting_bytes(self) -> int:
        """Bytes of frames that have not left, and are no part of a large answer that has yet to be written."""
        return self._backlog_bytes + self._gathered_bytes + self._transport.get_write_buffer_size()

    # -- sending ----------------------------------------------------------------------------------------------

    def send(self, frame: bytes, permit: Permit | None = None) -> None:
        """Send one small frame, after the bytes on their way; ``permit`` is released when it has left."""
        if self._gathered:
            self._write_gathered()
        if self._transport.is_closing():
            if permit is not None:
                permit.release()
        elif self._paused or self._in_frame or self._backlog:
            self._backlog.append((frame, permit))
            self._backlog_bytes += len(frame)
            self.is_crowded = self._backlog_bytes > CROWDED
        else:
            self._write(frame, permit)

    def send_answer_now(self, frame: bytes) -> bool:
        """Send a small answer if that takes no waiting for permits; else nothing happens and it is ``False``."""
        size = len(frame)
        if size > SMALL_ANSWER:
            return False
        if self._gathered_bytes + size > SMALL_ANSWER:
            self._write_gathered()
        if not self._has_room(self._gathered_bytes + size):
            return False
        if self._paused or self._in_frame or self._backlog:
            self.send(frame, self._permits.reserve.try_acquire(size))
            return True
        self._gathered.append(frame)
        self._gathered_bytes += size
        if not self._is_gathering:
            self._write_gathered()
        return True

    def push(self, frame: bytes) -> bool:
        """Send a small frame that nobody asked for, if there is room; returns ``False`` otherwise."""
        size = len(frame)
        if not (self._paused or self._in_frame or self._backlog or self._gathered) and size <= SMALL_ANSWER:
            # As a rule: of one change, for each of thousands of peers.
            if not self._permits.reserve.has_room(size):
                return False
            self._write_now(frame, size, 1)
            self._has_pushed = self._paused
            return True
        crowds = self._backlog_bytes + size > PUSHED
        waits = self._paused or self._in_frame or bool(self._backlog)
        is_sent = not (crowds and waits) and self.send_answer_now(frame)
        self._has_pushed = self._paused or self._in_frame or bool(self._backlog)
        return is_sent

    def has_unread(self) -> bool:
        """Whether the peer has yet to read waiting bytes besides a large answer under way."""
        return not self._in_frame and (self._paused or bool(self._backlog))

    def gather(self) -> None:
        """Write the small answers from here to :meth:`write_gathered` together.

        It is for answers that are made without a turn of the loop between them. Any other frame is written at once,
        after the gathered ones.
        """
        self._is_gathering = True

    def write_gathered(self) -> None:
        """Write the gathered answers, and gather no more."""
        self._is_gathering = False
        if self._gathered:
            self._write_gathered()

    def _has_room(self, size: int) -> bool:
        """Whether a small answer of so many bytes need not wait."""
        return not self.is_crowded and self._permits.reserve.has_room(size)

    async def send_answer(
        self, answer: OutgoingAnswer, holds: Callable[[PermitBudget], bool] = lambda _budget: False
    ) -> None:
        """Send an answer, small or large; returns when its last bytes are with the transport or the peer is gone.

        Its deadline bounds the waiting for the turn to write and for permits; ``holds`` says whether it has memory of a
        budget. Raises :exc:`~broker_core.errors.TooManyRequests`, and has sent nothing then.
        """
        size = answer.size
        is_small = size <= SMALL_ANSWER
        if is_small and not self._small.locked() and self._has_room(size):
            sent = self.send_answer_now(answer.joined())
            assert sent  # there is room, and nobody waits for it
            return
        turn = self._small if is_small else self._large  # waiting callers hold no permits
        async with _in_time(answer.deadline):
            await turn.acquire()
        try:
            if is_small:
                await self._send_small(answer.joined(), answer.deadline)
            else:
                await self._send_large(answer, size, holds)
        finally:
            turn.release()

    async def _send_small(self, frame: bytes, deadline: float) -> None:
        async with _in_time(deadline):
            while self.is_crowded and not self._transport.is_closing():
                await self._change()
        left = deadline - self._loop.time()
        self.send(frame, await self._permits.of_answer(self._permits.reserve, len(frame), left))

    async def _send_large(
        self, answer: OutgoingAnswer, size: int, holds: Callable[[PermitBudget], bool]
    ) -> None:
        async with _in_time(answer.deadline):
            await self._nothing_before()
        left = answer.deadline - self._loop.time()
        permit = await self._permits.of_answer(self._permits.direct, LEAST_PIECE, left)
        try:
            await self._nothing_before()
            self._in_frame = True  # from here on other frames wait, and the begun frame must be completed
            pace = self._pace = ReaderPace(
                size, self._loop.time(), write_timeout=self._write_timeout, min_rate=self._min_rate
            )
            large = LargeAnswer(pace, self._permits.direct, LEAST_PIECE, holds, self._cut)
            try:
                with self._answers.writing(large):
                    await self._write_pieces(answer, large)
            except BaseException:
                self._transport.abort()  # half a frame is sent: nothing that follows could be understood
                raise
            finally:
                self._in_frame = False
                self._pace = None
                self._flush()
        finally:
            permit.release()

    async def _nothing_before(self) -> None:
        """Wait until all earlier bytes have left."""
        while (self._paused or self._backlog) and not self._transport.is_closing():
            await self._change()

    async def _write_pieces(self, answer: OutgoingAnswer, large: LargeAnswer) -> None:
        transport = self._transport
        body = answer.body if isinstance(answer.body, FieldsReader) else FieldsReader.of(answer.body)
        transport.write(answer.head)
        while body.left and not transport.is_closing():
            size, larger = large.piece(min(large.pace.piece(self._loop.time()), body.left))
            try:
                piece = body.read(size)
                transport.write(piece)
                large.wrote(len(piece))
                del piece  # the next ones are gathered when these bytes are gone
                while self._paused and not transport.is_closing():
                    large.waited()
                    await self._change()
            finally:
                if larger is not None:
                    larger.release()
            await large.turn()
        if not transport.is_closing():
            transport.write(answer.tail)

    def _write_gathered(self) -> None:
        # There was room for their permits when they were gathered, and nobody else has had a turn since. So they are
        # taken only for bytes that wait in the transport.
        frames, self._gathered = self._gathered, []
        size, self._gathered_bytes = self._gathered_bytes, 0
        if not self._transport.is_closing():
            self._write_now(frames[0] if len(frames) == 1 else b"".join(frames), size, len(frames))

    def _write_now(self, data: bytes, size: int, frames: int) -> None:
        """Write so many frames for which there is room."""
        reserve = self._permits.reserve
        self._transport.write(data)
        permit = reserve.try_acquire(size) if self._paused else None
        if permit is None:
            reserve.count_granted(frames)
        else:
            reserve.count_granted(frames - 1)
            self._unsent.append(permit)

    def _write(self, frame: bytes, permit: Permit | None) -> None:
        self._transport.write(frame)
        if permit is not None:
            if self._paused:  # it waits in the transport
                self._unsent.append(permit)
            else:
                permit.release()

    # -- flow control -----------------------------------------------------------------------------------------

    def paused(self) -> None:
        """Note that the transport holds bytes that the peer has not taken."""
        self._paused = True
        seconds = self._write_timeout
        if self._pace is not None:
            now = self._loop.time()
            self._pace.waits(now)
            seconds = self._pace.stall(now)
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, self._on_stalled, seconds)

    def resumed(self) -> None:
        """Note that all bytes have left the transport."""
        self._paused = False
        if self._pace is not None:
            self._pace.goes_on(self._loop.time())
        self._stop_timer()
        self._release_unsent()
        self._wake()
        if (self._backlog or self._has_pushed) and self._flushing is None:
            self._flushing = self._loop.call_soon(self._flush)

    def closed(self) -> None:
        """Give up whatever waits, and its permits, at the end of the connection."""
        self._paused = False
        self._stop_timer()
        self._release_unsent()
        self._drop_backlog()
        self._wake()

    def _flush(self) -> None:
        """Send the frames that came up meanwhile, as far as the peer takes them."""
        self._flushing = None
        while self._backlog and not (self._paused or self._in_frame):
            if self._transport.is_closing():
                self._drop_backlog()
                break
            frame, permit = self._backlog.popleft()
            self._backlog_bytes -= len(frame)
            self._write(frame, permit)
        self._wake()
        was_crowded, self.is_crowded = self.is_crowded, self._backlog_bytes > CROWDED
        has_read = self._has_pushed and not (self._paused or self._in_frame or self._backlog)
        self._has_pushed = self._has_pushed and not has_read
        if has_read or (was_crowded and not self.is_crowded):
            self._loop.call_soon(self._on_room)

    async def _change(self) -> None:
        """Wait until something may have changed: bytes have left, the backlog is shorter, the connection is over."""
        changed = self._loop.create_future()
        self._waiting.append(changed)
        await changed

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for changed in waiting:
            if not changed.done():
                changed.set_result(None)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _release_unsent(self) -> None:
        unsent, self._unsent = self._unsent, []
        for permit in unsent:
            permit.release()

    def _drop_backlog(self) -> None:
        backlog, self._backlog = self._backlog, deque()
        self._backlog_bytes = 0
        for _, permit in backlog:
            if permit is not None:
                permit.release()


def _pieces(body: FieldsReader) -> Iterator[memoryview]:
    while body.left:
        yield body.read(body.left)


@asynccontextmanager
async def _in_time(deadline: float) -> AsyncIterator[None]:
    """A block that ends by ``deadline``, or with the error of an answer that could not be sent in time."""
    try:
        async with asyncio.timeout_at(deadline):
            yield
    except TimeoutError:
        raise TooManyRequests(
            "The answer could not be sent in time", reason="time", cause=Cause.TIME
        ) from None
