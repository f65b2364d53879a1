"""One connection to each size, in turns, so that other load on the machine affects all sizes alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.measure import Latency, latency
from tests.benchmarks.postgres.asked import Asked
from tests.benchmarks.postgres.devices import Devices
from tests.benchmarks.subject import capacity
from tests.benchmarks.wire_client import RawClient
from tests.support.served import Served

__all__ = ["Subject", "measure_rounds"]

#: Answers before the clock runs: connections are made, statements prepared.
_WARM = 8
_MOST = 400


@dataclass(frozen=True, slots=True)
class Subject:
    """A size: its topics, the server in front of them, and what it is asked."""

    devices: Devices
    served: Served
    questions: list[Asked]


def measure_rounds(
    subjects: Sequence[Subject], seconds: float, rounds: int
) -> list[dict[str, dict[str, Any]]]:
    """By question: p50 and p99 of the best round, in seconds, all p50s, and the answer in bytes.

    No turn is asked twice, as long as there are enough different ones: then no answer is one that was kept.
    """
    names = list(dict.fromkeys(question.name for subject in subjects for question in subject.questions))
    clients = [RawClient(subject.served.address, capacity(subject.devices.size)) for subject in subjects]
    measured: list[dict[str, list[Latency]]] = [{} for _ in subjects]
    try:
        for name in names:
            for turn in range(rounds):
                for subject, client, of in zip(subjects, clients, measured, strict=True):
                    question = next((each for each in subject.questions if each.name == name), None)
                    if question is not None:
                        of.setdefault(name, []).append(_round(client, question, seconds, turn))
    finally:
        for client in clients:
            client.close()
    return [{name: _best(of[name]) for name in names if name in of} for of in measured]


def _round(client: RawClient, question: Asked, seconds: float, turn: int) -> Latency:
    first = 100 + turn * (_WARM + _MOST)
    few = 1 if not question.selective else _WARM
    for each in range(first, first + few):
        client.ask(question.frame(each))
    return latency(
        client, question.frame, turns=range(first + few, first + _WARM + _MOST), budget=seconds, at_least=3
    )


def _best(rounds: list[Latency]) -> dict[str, Any]:
    best = min(rounds, key=lambda each: each.p50)
    return {
        "p50": best.p50,
        "p99": best.p99,
        "count": sum(each.count for each in rounds),
        "size": best.size,
        "p50_of_rounds": [each.p50 for each in rounds],
    }
