"""The topics of a benchmark, and questions about them with known answers.

A local name is 38 characters: ``device-0012345-x0123-y0456-z0789-w0001``. The number gives prefixes of exactly 10
matches. Each of the four tags spreads the numbers differently over groups of exactly 1,000, so a tag is an infix of
exactly 1,000 matches, and there are many of both, so that questions can differ each time they are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["LOCAL_LENGTH", "TAGS", "TOPICS_PER_TAG", "Questions", "local_name", "local_names", "namespace_of"]

LOCAL_LENGTH = 38
TOPICS_PER_TAG = 1_000
#: Odd multipliers without a factor of 5: permutations of range(size) for every size that is a power of ten.
TAGS = (("x", 7_919), ("y", 104_729), ("z", 611_953), ("w", 999_983))


def namespace_of(size: int) -> str:
    """The namespace that holds ``size`` topics."""
    return f"public/n{size // 1000}k"


def local_names(size: int) -> Iterator[str]:
    """The local names of ``size`` topics, a power of ten from 10,000 on, in order of their number."""
    for number in range(size):
        yield local_name(number, size)


def local_name(number: int, size: int) -> str:
    """The local name of the topic with this number, of ``size`` topics."""
    tags = "".join(f"-{tag}{number * factor % size // TOPICS_PER_TAG:04d}" for tag, factor in TAGS)
    return f"device-{number:07d}{tags}"


@dataclass(frozen=True, slots=True)
class Questions:
    """Topics patterns over the ``size`` topics of one namespace; ``turn`` picks one of many of the same kind."""

    size: int

    @property
    def namespace(self) -> str:
        """Where the topics are."""
        return namespace_of(self.size)

    def prefix(self, turn: int) -> str:
        """A prefix that 10 topics have; ``size / 10`` different ones."""
        # A large odd step, so that turns jump about in the namespace.
        return f"persistent://{self.namespace}/device-{turn * 7_919 % (self.size // 10):06d}.*"

    def infix(self, turn: int) -> str:
        """An infix that 1,000 topics have; :attr:`infixes` different ones."""
        groups = self.size // TOPICS_PER_TAG
        tag = TAGS[turn // groups % len(TAGS)][0]
        return f"persistent://{self.namespace}/.*-{tag}{turn % groups:04d}.*"

    @property
    def infixes(self) -> int:
        """How many different infixes there are."""
        return len(TAGS) * (self.size // TOPICS_PER_TAG)

    @property
    def everything(self) -> str:
        """The pattern that all topics match."""
        return f"persistent://{self.namespace}/.*"
