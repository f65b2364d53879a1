"""One run over one server, broker-core or a real broker: the same client asks the same questions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from tests.benchmarks.measure import asked_at_once, latency
from tests.benchmarks.names import namespace_of
from tests.benchmarks.processes import resident
from tests.benchmarks.questions import Question, questions
from tests.benchmarks.wire_client import RawClient, get_topics_frame, read_answer

__all__ = ["Effort", "Figures", "capacity", "check_answers", "run_questions"]

ROTATING, REPEATING = "rotating", "repeating"


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is measured: at most ``seconds`` a question, but ``at_least`` answers; ``warm`` answers before it."""

    seconds: float
    at_least: int
    warm: int
    most: int = 2_000
    throughput_answers: int = 200


@dataclass(slots=True)
class Figures:
    """What one run measured: ``latency[question][patterns]`` with p50, p99, count, size; answers a second; memory."""

    latency: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    listings_per_second: dict[str, float] = field(default_factory=dict)
    resident: int = 0
    cold: dict[str, float] = field(default_factory=dict)


def capacity(size: int) -> int:
    """Room for the answer with all topics: each is less than 80 bytes on the wire."""
    return size * 80 + 65_536


def check_answers(address: tuple[str, int], size: int) -> str:
    """Ask each question once and look at the answer; the hash of everything. Outside of all measurements."""
    with contextlib.closing(RawClient(address, capacity(size))) as client:
        everything = read_answer(client.ask(get_topics_frame(1, namespace_of(size))))
        if everything.error is not None or everything.topics_hash is None:
            raise RuntimeError(f"the listing of {size} topics failed: {everything.error}")
        for question in questions(size, everything.topics_hash):
            for turn in (0, question.distinct - 1):
                answer = read_answer(client.ask(question.frame(turn)))
                if answer.error is not None or answer.topics != question.topics:
                    raise RuntimeError(
                        f"{question.name} of {size}: {answer}, where {question.topics} were expected"
                    )
                if answer.changed is (question.name == "unchanged"):
                    raise RuntimeError(f"{question.name} of {size}: {answer}")
        return everything.topics_hash


def run_questions(
    address: tuple[str, int], pid: int, size: int, everything_hash: str, effort: Effort
) -> Figures:
    """Measure all questions on one connection, then the prefix question on sixteen."""
    figures = Figures()
    with contextlib.closing(RawClient(address, capacity(size))) as client:
        for question in questions(size, everything_hash):
            figures.latency[question.name] = _both(client, question, effort)
    prefix = questions(size, everything_hash)[0]
    for patterns in (ROTATING, REPEATING):
        figures.listings_per_second[patterns] = asked_at_once(
            address,
            prefix.frame if patterns == ROTATING else _always(prefix.frame(0)),
            budget=effort.seconds,
            at_least=effort.throughput_answers,
        ).per_second
    figures.resident = resident(pid)
    return figures


def _both(client: RawClient, question: Question, effort: Effort) -> dict[str, dict[str, float]]:
    measured = {}
    for patterns in (ROTATING, REPEATING):
        if patterns == ROTATING:
            if question.distinct == 1:
                continue  # there is only one way to ask this
            # The last turns warm up; what is measured was never asked before.
            warm = min(effort.warm, question.distinct // 4)
            for turn in range(question.distinct - warm, question.distinct):
                client.ask(question.frame(turn))
            turns, frame = range(min(effort.most, question.distinct - warm)), question.frame
        else:
            same = question.frame(0)
            for _ in range(effort.warm):
                client.ask(same)
            turns, frame = range(effort.most), _always(same)
        measured[patterns] = asdict(
            latency(client, frame, turns=turns, budget=effort.seconds, at_least=effort.at_least)
        )
    return measured


def _always(frame: bytes) -> Callable[[int], bytes]:
    return lambda _turn: frame
