"""Questions about the topics of a benchmark, and the time that a server takes for one answer."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.benchmarks.growth.names_columns import properties_of
from tests.benchmarks.growth.trees import BenchmarkFailed, RunningServer
from tests.benchmarks.names import Questions, local_name
from tests.benchmarks.processes import cpu_seconds
from tests.benchmarks.wire_client import RawClient, get_topics_frame, read_answer

__all__ = ["Asking", "Spent", "changed_topics", "least", "pipelined"]

_CHANGED = 200
_WINDOW = 64
#: The kernel counts the time of a thread that runs when it pauses: some moments after its answer has come.
_SETTLE = 0.002
_FIRST_SECONDS = 180.0
_FIRST_PAUSE = 0.05


def changed_topics(size: int) -> list[str]:
    """Local names all over the namespace for changes to be made at: in tens with odd numbers, which
    :meth:`Asking.range_frame` does not ask for."""
    numbers = random.Random(7).sample(range(size // 20), min(_CHANGED, size // 20))
    return [local_name(number * 20 + 10, size) for number in numbers]


@dataclass(slots=True)
class Spent:
    """Seconds of one answer: as the client sees it, and of the server's processor."""

    seconds: float
    cpu: float
    size: int


def least(spent: Sequence[Spent]) -> tuple[float, float]:
    """The least seconds, and the least processor seconds, of several answers."""
    return min(each.seconds for each in spent), min(each.cpu for each in spent)


@dataclass(slots=True)
class Asking:
    """What is asked of one server about its namespace of ``size`` topics. Frames are not the same twice."""

    server: RunningServer
    size: int
    about: Questions = field(init=False)
    _turns: Iterator[int] = field(init=False)
    _scans: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self.about = Questions(self.size)
        self._turns = itertools.count()
        self._scans = _scan_patterns()

    @property
    def everything(self) -> bytes:
        """The whole namespace."""
        return get_topics_frame(1, self.about.namespace)

    def range_frame(self, turn: int, topics_hash: str | None = None) -> bytes:
        """The ten topics of a number with a fixed beginning; ``size / 20`` different questions."""
        number = turn * 7_919 % (self.size // 20) * 2
        pattern = f"persistent://{self.about.namespace}/device-{number:06d}.*"
        return get_topics_frame(1, self.about.namespace, pattern, topics_hash)

    def new_range(self) -> bytes:
        """A range that was not asked for yet."""
        return self.range_frame(next(self._turns))

    def infix(self, turn: int) -> bytes:
        """The thousand topics with a tag."""
        return get_topics_frame(1, self.about.namespace, self.about.infix(turn))

    def new_scan(self) -> bytes:
        """A pattern without a fixed part that a few topics match."""
        return get_topics_frame(
            1, self.about.namespace, f"persistent://{self.about.namespace}/{next(self._scans)}"
        )

    def selected(self) -> bytes:
        """Topics by two properties."""
        properties = properties_of(self.size // 2 + 10)
        return get_topics_frame(1, self.about.namespace, properties=properties)

    def first(self, client: RawClient, frame: bytes) -> Spent:
        """The first answer of a server; it is asked again if it could not read the namespace in time."""
        begun, cpu = time.perf_counter(), cpu_seconds(self.server.pid)
        while True:
            try:
                size = self.spent(client, frame).size
            except BenchmarkFailed:
                if time.perf_counter() - begun > _FIRST_SECONDS:
                    raise
                time.sleep(_FIRST_PAUSE)
            else:
                return Spent(time.perf_counter() - begun, cpu_seconds(self.server.pid) - cpu, size)

    def spent(self, client: RawClient, frame: bytes) -> Spent:
        """Ask, and see what the answer took. Raises :exc:`BenchmarkFailed` for an error."""
        pid = self.server.pid
        cpu = cpu_seconds(pid)
        begun = time.perf_counter()
        answer = client.ask(frame)
        seconds = time.perf_counter() - begun
        time.sleep(_SETTLE)
        spent = Spent(seconds, cpu_seconds(pid) - cpu, len(answer))
        if spent.size < 4_096 and (error := read_answer(answer).error) is not None:
            raise BenchmarkFailed(f"{self.server.tree.label}: {error}")
        return spent


def _scan_patterns() -> Iterator[str]:
    """Patterns of the last tag, each digit one of two, so that there is nothing to search for but a class."""
    pairs = [f"[{low}{high}]" for low, high in itertools.combinations(range(10), 2)]
    for number in itertools.count():
        digits = (pairs[(number * step) % len(pairs)] for step in (1, 7, 11, 17))
        yield ".*" + "".join(digits) + f"-[w-z]{pairs[number // len(pairs) % len(pairs)]}.*"


def pipelined(client: RawClient, frames: Sequence[bytes], size: int | None = None) -> int:
    """Ask all, always some ahead of the answers, which all have the same ``size``; raises :exc:`BenchmarkFailed`."""
    for low in range(0, len(frames), _WINDOW):
        window = frames[low : low + _WINDOW]
        client.send(b"".join(window))
        for _ in window:
            answer = client.receive()
            if size is None:
                size = len(answer)
            elif len(answer) != size:
                raise BenchmarkFailed(f"an answer of {len(answer)} bytes, not {size}: {read_answer(answer)}")
    return size or 0
