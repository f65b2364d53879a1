"""Seven questions as frames that differ each time, each with its goal and its answer by brute force.

Names and properties are compared here by Python's own means, and the hash is of Python's own sorting: nothing of the
server's has a part in what is expected.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeVar

import google_crc32c

from tests.benchmarks.postgres.devices import Devices
from tests.benchmarks.subject import capacity
from tests.benchmarks.wire_client import RawClient, get_topics_frame, read_answer

__all__ = ["Asked", "asked", "check_questions"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question. ``frame(turn)`` differs for ``distinct`` turns; ``goal`` is its p50 in seconds at a million topics.

    ``matches(turn)`` tells whether a topic (its local name, and its properties) is in the answer; ``selective`` ones
    have as many topics in it whatever the size of the namespace.
    """

    name: str
    goal: float
    frame: Callable[[int], bytes]
    matches: Callable[[int], Callable[[str, dict[str, str]], bool]]
    distinct: int
    selective: bool = True
    unchanged: bool = False


def asked(devices: Devices, everything_hash: str = "") -> list[Asked]:
    """The questions that a namespace of this size has an answer for; ``everything_hash`` is that of all its topics."""
    ask, pattern, within = devices.namespace, devices.begins_with, devices.contains
    line, plant = f"{devices.line:,}", f"{devices.plant:,}"

    def by_pattern(text: Callable[[int], str]) -> Callable[[int], bytes]:
        return lambda turn: get_topics_frame(turn, ask, text(turn))

    def by_team(turn: int) -> bytes:
        # Java sends all properties of a consumer: two select, two are ignored.
        properties = {"owner": "o1", **devices.team_and_region(turn), "client": "bench"}
        return get_topics_frame(turn, ask, properties=properties)

    every = [
        Asked(
            "exact name",
            0.001,
            by_pattern(devices.exact),
            _with(
                lambda turn: devices.exact(turn).rpartition("/")[2], lambda exact, local, _: local == exact
            ),
            devices.size,
        ),
        Asked(
            f"{line} by prefix",
            0.010,
            by_pattern(lambda turn: pattern(devices.line_prefix(turn))),
            _with(devices.line_prefix, lambda prefix, local, _: local.startswith(prefix)),
            devices.lines,
        ),
        Asked(
            f"{plant} by prefix",
            0.050,
            by_pattern(lambda turn: pattern(devices.plant_prefix(turn))),
            _with(devices.plant_prefix, lambda prefix, local, _: local.startswith(prefix)),
            devices.plants,
        ),
        Asked(
            f"{line} by two properties",
            0.012,
            by_team,
            _with(
                lambda turn: devices.team_and_region(turn).items(),
                lambda pair, _, properties: pair <= properties.items(),
            ),
            devices.lines,
        ),
        Asked(
            f"{line} by infix",
            0.040,
            by_pattern(lambda turn: within(devices.tag(turn))),
            _with(devices.tag, lambda tag, local, _: tag in local),
            devices.lines,
        ),
        Asked(
            "unchanged hash of all",
            0.002,
            lambda turn: get_topics_frame(turn, ask, topics_hash=everything_hash),
            _anything,
            1,
            unchanged=True,
        ),
        Asked("all", 1.0, lambda turn: get_topics_frame(turn, ask), _anything, 1, selective=False),
    ]
    return [each for each in every if each.distinct and (everything_hash or not each.unchanged)]


_Matches = Callable[[str, dict[str, str]], bool]
_Wanted = TypeVar("_Wanted")


def _anything(_turn: int) -> _Matches:
    return lambda _local, _properties: True


def _with(
    wanted: Callable[[int], _Wanted], fits: Callable[[_Wanted, str, dict[str, str]], bool]
) -> Callable[[int], _Matches]:
    """Whether a topic fits what is wanted at a turn."""
    return lambda turn: partial(fits, wanted(turn))


def check_questions(address: tuple[str, int], devices: Devices, turns: Sequence[int] = (0, 1, 17)) -> str:
    """Compare answers with brute force: how many topics, and their hash. Returns the hash of all topics."""
    topics = [(devices.local_name(number), devices.properties(number)) for number in range(devices.size)]
    topics.sort()
    assert all(first[0] != second[0] for first, second in pairwise(topics))
    with contextlib.closing(RawClient(address, capacity(devices.size))) as client:
        for question in asked(devices):
            for turn in turns[:1] if question.distinct == 1 else turns:
                matches = question.matches(turn)
                names = [name for name, properties in topics if matches(name, properties)]
                expected = (len(names), _hash(devices.namespace, names))
                answer = read_answer(client.ask(question.frame(turn)))
                if answer.error is not None or (answer.topics, answer.topics_hash) != expected:
                    raise RuntimeError(
                        f"{question.name} of {devices.size:,}: {answer}, where {expected} was expected"
                    )
        everything = _hash(devices.namespace, [name for name, _ in topics])
        for question in asked(devices, everything):
            if question.unchanged:
                answer = read_answer(client.ask(question.frame(1)))
                if answer.error is not None or answer.changed or answer.topics:
                    raise RuntimeError(f"{question.name} of {devices.size:,}: {answer}")
        return everything


def _hash(namespace: str, names: list[str]) -> str:
    """Of sorted ASCII names, as brokers have it: CRC32C of the joined full names, as little-endian hex."""
    joined = ",".join(f"persistent://{namespace}/{name}" for name in names)
    crc: int = google_crc32c.value(joined.encode())
    return crc.to_bytes(4, "little").hex()
