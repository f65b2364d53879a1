"""Large answers that are being written, over any protocol: the permits of their pieces, turns, and slow readers.

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
from broker_core.servers.connection.reader_pace import ReaderPace

__all__ = ["WINDOW", "LargeAnswer", "LargeAnswers"]

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
        """While an answer is read, it may be cut off."""
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
