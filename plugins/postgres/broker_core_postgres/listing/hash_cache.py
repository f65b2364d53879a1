"""Questions with the hash of their last answer, and the version that it is for.

A client that asks again carries the hash that it has. Where the version of the namespace is still the one that a
question was answered at, the hash of the answer is known, and no row has to be read to say "unchanged". An entry is of
one version and is replaced as a whole, so that the hash of one version is never taken for another's; the version names
the history of the database too (:mod:`..changes.version_history`), so that one that went back finds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from broker_core.names import Mode, NamespaceName

__all__ = ["LastAnswer", "QuestionKey", "key_bytes"]

#: Namespace, mode, the pattern that was applied, and the properties that select, sorted.
QuestionKey: TypeAlias = "tuple[NamespaceName, Mode, str | None, tuple[tuple[str, str], ...]]"

#: Bytes of a :class:`Known` with its texts, about.
_KNOWN: Final = 250


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """What is known of a question: its hash at a version, and how many bytes of names were read for it."""

    version: str
    topics_hash: str
    read_bytes: int


def key_bytes(question: QuestionKey) -> int:
    """What a remembered question takes, in bytes, besides what every entry of a cache does."""
    _, _, pattern, pairs = question
    return 4 * (len(pattern or "") + sum(len(key) + len(value) for key, value in pairs)) + _KNOWN
