"""The count and topics hash of each question, as columns over all questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import ENTRY, CanonicalQuestion, split_keys

__all__ = ["QuestionTotal", "QuestionTotals", "question_totals"]


@dataclass(frozen=True, slots=True)
class QuestionTotal:
    """The number of topics of a question, and their hash."""

    question: CanonicalQuestion
    count: int
    topics_hash: str


@dataclass(frozen=True, slots=True, eq=False)
class QuestionTotals(Sequence[QuestionTotal]):
    """The totals of ``questions``, in their order: columns of ``counts`` (int64) and of hashes as ``crcs`` (uint32).

    A total is an object only while somebody looks at it.
    """

    questions: Sequence[CanonicalQuestion]
    counts: Array
    crcs: Array

    @property
    def matches(self) -> int:
        """The number of topics of all questions together."""
        return int(self.counts.sum())

    def __len__(self) -> int:
        return len(self.questions)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return QuestionTotals(self.questions[at], self.counts[at], self.crcs[at])
        return QuestionTotal(
            self.questions[at], int(self.counts[at]), EncodedNames.hash_of_crc(int(self.crcs[at]))
        )


def question_totals(
    questions: Sequence[CanonicalQuestion], tallies: Mapping[tuple[str, str], Array]
) -> QuestionTotals:
    """The totals of the questions, in their order, from the tallies of selectors by namespace and domain."""
    every = np.concatenate([np.empty(0, ENTRY), *tallies.values()])
    rows = {
        key: row
        for row, key in enumerate(
            (place, key) for place, column in tallies.items() for key in split_keys(column["key"])
        )
    }
    parts: list[tuple[int, int]] = []
    for number, question in enumerate(questions):
        key = question.selector.key
        for domain in question.domains:
            row = rows.get(((question.namespace, domain), key))
            if row is not None:
                parts.append((number, row))
    counts, crcs = np.zeros(len(questions), np.int64), np.zeros(len(questions), np.uint32)
    if parts:
        numbers = np.array([number for number, _ in parts])
        found = every[[row for _, row in parts]]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        counts[numbers[starts]] = np.add.reduceat(found["count"], starts)
        crcs[numbers[starts]], _ = EncodedNames.joined_crcs(found["crc"], found["joined"], starts)
    return QuestionTotals(questions, counts, crcs)
