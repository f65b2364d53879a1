"""Large answers that are being written, over any protocol: the pace and permits of pieces, turns, and slow readers.

An answer is written as its peer reads (:class:`ReaderPace`), in pieces by which a slow one cannot hold much memory.

An answer keeps permits for its least piece to its end. Larger pieces are for peers that read quickly, while half of the
permits are free: so the slow ones leave room for the answers of others, however many they are. A peer that reads as
fast as the server writes does not keep the others waiting: each piece is a turn of its own if others write too, each
window otherwise. The slowest peer is cut off if others wait for the memory of its answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Final

from broker_core.memory import Permit, PermitBudget

__all__ = ["LEAST_PIECE", "PIECE", "SLOW", "WINDOW", "LargeAnswer", "LargeAnswers", "ReaderPace", "piece_for"]

#: The most bytes of an answer that a transport gets at once. A hundred peers may be writable in one turn of the event
#: loop, and the kernel copies all that is written in it: at a mebibyte each, a PONG would wait for a hundred of these
#: copies.
PIECE: Final = 128 * 1024
#: The fewest bytes of a piece: a peer that reads slowly, or not at all, keeps so many waiting in its transport.
LEAST_PIECE: Final = 16 * 1024

#: Bytes a second: a slower reader may be closed if other requests wait for the memory of its answer.
SLOW: Final = 1024 * 1024
_SLOW_SECONDS: Final = 1.0  # before this it is not called slow

_PIECE_SECONDS: Final = 0.02  # the time that a piece should take to leave
_LEAST_SECONDS: Final = 0.001  # before this nothing is known of a peer's speed


def piece_for(done: int, seconds: float, least: int, most: int) -> int:
    """Bytes of the next piece: as many as take 20 ms at the speed of ``done`` bytes in so many seconds, in bounds."""
    return max(least, min(most, int(done / max(seconds, _LEAST_SECONDS) * _PIECE_SECONDS)))


class ReaderPace:
    """The pace of one answer of ``size`` bytes, from ``now`` on; times are in seconds of the event loop's clock.

    The peer has ``write_timeout`` seconds and one for each ``min_rate`` bytes; only time in which the server waits for
    it counts. ``min_rate`` of 0 is no limit.
    """

    __slots__ = ("_min_rate", "_patience", "_started", "_waiting_since", "_write_timeout", "_written")

    def __init__(self, size: int, now: float, *, write_timeout: float, min_rate: int) -> None:
        self._started = now
        self._written = 0
        self._waiting_since: float | None = None
        self._write_timeout = write_timeout
        self._min_rate = min_rate
        self._patience = write_timeout + size / min_rate if min_rate > 0 else float("inf")

    @property
    def patience(self) -> float:
        """Seconds that the peer may keep this answer waiting still."""
        return max(self._patience, 0.0)

    def stall(self, now: float) -> float:
        """Seconds that the peer may take nothing from ``now`` on: ``write_timeout``, or as long as it has been faster
        than ``min_rate`` on the whole.

        The kernels of both sides have buffers of tens of megabytes. They fill at once; then a steady reader that is
        slow takes from them, and nothing of the answer leaves for many seconds.
        """
        ahead = self._written / self._min_rate - (now - self._started) if self._min_rate > 0 else 0.0
        return min(max(self._write_timeout, ahead), self.patience)

    def piece(self, now: float) -> int:
        """Bytes to write next: as many as the peer takes in 20 ms at its speed so far."""
        seconds = now - self._started
        if seconds < _LEAST_SECONDS:
            return PIECE
        return piece_for(self._written, seconds, LEAST_PIECE, PIECE)

    def slowness(self, now: float) -> float | None:
        """The time that this has taken, in seconds, if the peer reads slower than :data:`SLOW`; else ``None``."""
        seconds = now - self._started
        return seconds if seconds >= _SLOW_SECONDS and self._written < seconds * SLOW else None

    def wrote(self, size: int) -> None:
        """Count written bytes."""
        self._written += size

    def waits(self, now: float) -> None:
        """Note that the peer takes no more for now."""
        self._waiting_since = now

    def goes_on(self, now: float) -> None:
        """Note that the peer has taken all that was written."""
        if self._waiting_since is not None:
            self._patience -= now - self._waiting_since
            self._waiting_since = None


#: Bytes of an answer that are written in one turn of the event loop if no other connection writes.
WINDOW: Final = 1024 * 1024


class LargeAnswer:
    """One answer, which is read at a ``pace``, and holds ``least`` permits of the budget ``direct``.

    ``holds`` says whether its memory is of a budget, ``cut`` ends it.
    """

    __slots__ = ("_direct", "_in_turn", "_larger", "_least", "cut", "holds", "pace")

    def __init__(
        self,
        pace: ReaderPace,
        direct: PermitBudget,
        least: int,
        holds: Callable[[PermitBudget], bool],
        cut: Callable[[], None],
    ) -> None:
        self.pace = pace
        self.holds = holds
        self.cut = cut
        self._direct = direct
        self._least = least
        self._larger: deque[Permit] = deque(maxlen=2)  # of the piece that is written, and of the one after it
        self._in_turn = 0  # bytes since others had a turn

    def piece(self, size: int) -> tuple[int, Permit | None]:
        """The size of the next piece, ``size`` at the most, and permits for its bytes beyond the least.

        There are some while half of the budget is free; without any the piece has the least size.
        """
        more, direct = size - self._least, self._direct
        if more > 0 and not (direct.maximum and direct.acquired + more > direct.maximum // 2):
            permit = direct.try_acquire(more)
            if permit is not None:
                self._larger.append(permit)
                return size, permit
        return min(size, self._least), None

    def wrote(self, size: int) -> None:
        """Count written bytes."""
        self.pace.wrote(size)
        self._in_turn += size

    def waited(self) -> None:
        """Begin a new turn: others had theirs while the peer read nothing."""
        self._in_turn = 0

    async def turn(self) -> None:
        """Let others have a turn, if it is theirs."""
        if self._in_turn >= WINDOW or (self._in_turn and not self._is_alone()):
            self._in_turn = 0
            await asyncio.sleep(0)

    def _is_alone(self) -> bool:
        """Whether no other large answer is being written on any connection."""
        return self._direct.acquired <= self._least + sum(permit.count for permit in self._larger)


class LargeAnswers:
    """The large answers of one server; for one event loop."""

    def __init__(self) -> None:
        self._answers: set[LargeAnswer] = set()

    @contextmanager
    def writing(self, answer: LargeAnswer) -> Iterator[None]:
        """A block in which an answer is written, and may be cut off if its reader is slow."""
        self._answers.add(answer)
        try:
            yield
        finally:
            self._answers.discard(answer)

    def make_room(self, budget: PermitBudget) -> None:
        """Cut the slowest reader off whose answer holds permits of ``budget``, for which a request has waited long.

        Only the slow client pays: it asks again, while the others would get no answer at all.
        """
        now = asyncio.get_running_loop().time()
        slow = [
            (seconds, answer)
            for answer in self._answers
            if answer.holds(budget) and (seconds := answer.pace.slowness(now)) is not None
        ]
        if slow:
            max(slow, key=itemgetter(0))[1].cut()
