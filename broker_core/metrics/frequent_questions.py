"""The most frequent questions and their counts, in bounded memory and without secrets.

Counts are those of the Space-Saving sketch (Metwally et al., 2005), emptied in batches: with room for ``n`` questions,
every question asked more than ``total / n`` times is in it, and ``error`` bounds by how much a count may be too high.
Askers are not recorded, and of the properties only the keys that select topics.

Clients choose the text of questions, so all of it together is bounded too: if questions are long, there is room for
fewer of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from sys import getsizeof
from typing import Any, TypeAlias

from broker_core.compact_json import ascii_json
from broker_core.names import Mode

__all__ = ["QuestionCount", "QuestionCounter", "QuestionKey", "question_lines", "question_record"]


@dataclass(frozen=True, slots=True)
class QuestionCount:
    """One question with how often it was asked (at most ``error`` too high) and the seconds its answers took.

    ``last_asked`` is in seconds since 1970.
    """

    namespace: str
    mode: Mode
    topics_pattern: str | None
    properties: tuple[tuple[str, str], ...]
    count: int
    error: int
    seconds: float
    last_asked: float


#: A question without its asker: namespace, mode, pattern, and the pairs of properties that select, in order.
QuestionKey: TypeAlias = tuple[str, Mode, str | None, tuple[tuple[str, str], ...]]


class QuestionCounter:
    """Counts questions; holds at most ``capacity`` of them, none with a text over ``max_text`` characters.

    ``max_bytes`` bounds the memory of all their text; each takes some 400 bytes besides. ``clock`` gives seconds since
    1970.
    """

    def __init__(
        self,
        capacity: int = 4096,
        *,
        max_text: int = 1024,
        max_bytes: int = 1024 * 1024,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.capacity = capacity
        self.max_text = max_text
        self.max_bytes = max_bytes
        self._clock = clock
        self._counts: dict[QuestionKey, list[float]] = {}  # count, error, seconds, last asked
        self._floor = 0  # the most that a question which is not here may have been counted before
        self._bytes = 0

    def record(
        self,
        namespace: str,
        mode: Mode,
        topics_pattern: str | None,
        properties: Mapping[str, str],
        seconds: float,
    ) -> None:
        """Count one answer. ``properties`` are only the ones that select."""
        pairs = tuple(sorted(properties.items())) if properties else ()
        key = (namespace, mode, topics_pattern, pairs)
        if self.again(key, seconds):
            return
        text = len(topics_pattern or "") + sum(len(name) + len(value) for name, value in pairs)
        if text > self.max_text:
            return
        size = _text_bytes(key)
        if size > self.max_bytes:
            return
        while self._counts and (len(self._counts) >= self.capacity or self._bytes + size > self.max_bytes):
            self._make_room()
        self._counts[key] = [self._floor + 1, self._floor, seconds, self._clock()]
        self._bytes += size

    def again(self, key: QuestionKey, seconds: float) -> bool:
        """Count one more answer to a question that is here; false if it is not. It is called for each watcher."""
        entry = self._counts.get(key)
        if entry is None:
            return False
        entry[0] += 1
        entry[2] += seconds
        entry[3] = self._clock()
        return True

    def _make_room(self) -> None:
        """Drop the least frequent quarter at once, so that a new question costs a constant on average."""
        ordered = sorted(self._counts.items(), key=lambda item: item[1][0])
        leaving = ordered[: max(1, len(ordered) // 4)]
        self._floor = int(leaving[-1][1][0])
        for key, _ in leaving:
            del self._counts[key]
            self._bytes -= _text_bytes(key)

    def most_frequent(self, limit: int | None = None) -> list[QuestionCount]:
        """The questions, the most frequent first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1][0], -item[1][2]))[:limit]
        return [
            QuestionCount(*key, int(count), int(error), seconds, last_asked)
            for key, (count, error, seconds, last_asked) in ordered
        ]


def question_lines(questions: Iterable[QuestionCount]) -> Iterator[str]:
    """JSON lines, of which each is also a line of a file of patterns for a batch.

    ``namespace``, ``mode`` (``PERSISTENT``, ``NON_PERSISTENT`` or ``ALL``), ``pattern`` (``null`` without one) and
    ``properties`` are the question; ``count``, ``error``, ``seconds`` and ``last_asked`` (UTC) are its counts.
    """
    for each in questions:
        yield ascii_json(question_record(each)) + "\n"


def question_record(question: QuestionCount) -> dict[str, Any]:
    """The members of a line of :func:`question_lines`."""
    return {
        "namespace": question.namespace,
        "mode": question.mode.name,
        "pattern": question.topics_pattern,
        "properties": dict(question.properties),
        "count": question.count,
        "error": question.error,
        "seconds": round(question.seconds, 6),
        "last_asked": datetime.fromtimestamp(question.last_asked, UTC).isoformat(timespec="seconds"),
    }


def _text_bytes(key: QuestionKey) -> int:
    """The memory of a key's strings; a character takes one to four bytes of it."""
    namespace, _, pattern, pairs = key
    texts = [namespace, *(text for pair in pairs for text in pair)]
    return sum(getsizeof(text) for text in texts) + (0 if pattern is None else getsizeof(pattern))
