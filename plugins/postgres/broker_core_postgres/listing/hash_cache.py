"""The hash of each question's last answer, with the version that it belongs to.

A client repeats a question with the hash that it has. If the namespace still has the version of the entry, the hash
shows whether the answer is unchanged, and no rows are read. An entry is replaced as a whole, so that a hash never
passes for another version's. The version includes the history's epoch (:mod:`..changes.version_history`), so entries
are void after the database went back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from broker_core.names import Mode, NamespaceName

__all__ = ["LastAnswer", "QuestionKey", "key_bytes"]

#: Namespace, mode, the applied pattern, and the selecting properties, sorted.
QuestionKey: TypeAlias = "tuple[NamespaceName, Mode, str | None, tuple[tuple[str, str], ...]]"

#: Approximate bytes of a :class:`LastAnswer` with its texts.
_KNOWN: Final = 250


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer to a question: its version, its hash, and the bytes of names that were read for it."""

    version: str
    topics_hash: str
    read_bytes: int


def key_bytes(question: QuestionKey) -> int:
    """Bytes of a remembered question, beside the overhead of any cache entry."""
    _, _, pattern, pairs = question
    return 4 * (len(pattern or "") + sum(len(key) + len(value) for key, value in pairs)) + _KNOWN
