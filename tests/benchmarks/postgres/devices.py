"""The topics of this benchmark with properties, and questions about them with known answers.

A local name is 40 characters: ``plant-017-line-0531-device-0531042-x0123``. Lines have 1,000 devices, plants 31 lines:
prefixes of exactly 1,000 and 31,000 matches. The tag at the end spreads the numbers over groups of 1,000, so that it
is an infix of 1,000 matches. Each topic has a team (one of 10,000 topics), a region (a tenth of all), and an owner,
which says nothing; 1,000 topics have the same team and region.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from tests.benchmarks.names import namespace_of

__all__ = ["PROPERTY_KEYS", "Devices"]

#: The keys that select; clients send others too.
PROPERTY_KEYS = ("team", "region")

_LINES_PER_PLANT = 31
_REGIONS = 10
# Primes, and no factor of a size: permutations of range(size). The third one makes turns jump about.
_TAGGED, _OWNED, _STEP = 7_919, 104_729, 611_953


@dataclass(frozen=True, slots=True)
class Devices:
    """The ``size`` topics of one namespace, ``line`` of which are in a line; ``turn`` picks one of many questions."""

    size: int
    line: int = 1_000

    @property
    def namespace(self) -> str:
        """The path of the devices."""
        return namespace_of(self.size)

    @property
    def plant(self) -> int:
        """Topics of a plant."""
        return _LINES_PER_PLANT * self.line

    @property
    def lines(self) -> int:
        """How many lines there are, and tags, and pairs of team and region."""
        return self.size // self.line

    @property
    def plants(self) -> int:
        """How many plants have all of their lines; none in a small namespace."""
        return self.size // self.plant

    def local_name(self, number: int) -> str:
        """One of the topics."""
        tag = number * _TAGGED % self.size // self.line
        return (
            f"plant-{number // self.plant:03d}-line-{number // self.line:04d}-device-{number:07d}-x{tag:04d}"
        )

    def properties(self, number: int) -> dict[str, str]:
        """What belongs to it."""
        group = number * _OWNED % self.size // self.line
        return {"owner": f"o{number % 7}", **self._pair(group)}

    def json_lines(self) -> Iterator[str]:
        """The file that is loaded."""
        for number in range(self.size):
            yield json.dumps({"name": self.local_name(number), "properties": self.properties(number)}) + "\n"

    # -- questions

    def exact(self, turn: int) -> str:
        """The name of one topic."""
        return self._full(self.local_name(turn * _STEP % self.size))

    def line_prefix(self, turn: int) -> str:
        """What the names of a line begin with."""
        line = turn * _STEP % self.lines
        return f"plant-{line // _LINES_PER_PLANT:03d}-line-{line:04d}-"

    def plant_prefix(self, turn: int) -> str:
        """What the names of a plant begin with."""
        return f"plant-{turn * _STEP % self.plants:03d}-"

    def tag(self, turn: int) -> str:
        """What is in the names of 1,000 topics all over the namespace."""
        return f"-x{turn * _STEP % self.lines:04d}"

    def team_and_region(self, turn: int) -> dict[str, str]:
        """Two properties that 1,000 topics have."""
        return self._pair(turn * _STEP % self.lines)

    def begins_with(self, prefix: str) -> str:
        """The topics pattern of a prefix."""
        return self._full(f"{prefix}.*")

    def contains(self, text: str) -> str:
        """The topics pattern of an infix."""
        return self._full(f".*{text}.*")

    def _full(self, local: str) -> str:
        return f"persistent://{self.namespace}/{local}"

    @staticmethod
    def _pair(group: int) -> dict[str, str]:
        return {"team": f"t{group // _REGIONS:04d}", "region": f"r{group % _REGIONS}"}
