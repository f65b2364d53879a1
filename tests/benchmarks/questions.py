"""The five questions of a benchmark, with patterns that differ each time and patterns that repeat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.benchmarks.names import Questions
from tests.benchmarks.wire_client import get_topics_frame

__all__ = ["ASKED_RATIOS", "Question", "questions"]

#: How many times faster than the real broker a question has to be, by size (in the order of ``questions``).
ASKED_RATIOS: dict[int, dict[str, float]] = {
    1_000_000: {"prefix": 8_000, "infix": 80, ".*": 30, "none": 18, "unchanged": 6_000},
    100_000: {"prefix": 500, "infix": 50, ".*": 30, "none": 15, "unchanged": 400, "16 connections": 400},
    10_000: {"prefix": 40, "infix": 20, ".*": 20, "none": 15, "unchanged": 40, "16 connections": 35},
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question, as frames. ``frame(turn)`` differs for ``distinct`` turns; ``topics`` are in each answer."""

    name: str
    frame: Callable[[int], bytes]
    distinct: int
    topics: int


def questions(size: int, everything_hash: str) -> list[Question]:
    """The five questions about the namespace of ``size`` topics, whose hash is ``everything_hash``."""
    about = Questions(size)
    ask = about.namespace
    return [
        Question("prefix", lambda turn: get_topics_frame(turn, ask, about.prefix(turn)), size // 10, 10),
        Question("infix", lambda turn: get_topics_frame(turn, ask, about.infix(turn)), about.infixes, 1_000),
        Question(".*", lambda turn: get_topics_frame(turn, ask, about.everything), 1, size),
        Question("none", lambda turn: get_topics_frame(turn, ask), 1, size),
        Question("unchanged", lambda turn: get_topics_frame(turn, ask, topics_hash=everything_hash), 1, 0),
    ]
