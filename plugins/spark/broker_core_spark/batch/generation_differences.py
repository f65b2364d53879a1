"""Differences to the generation before: questions that came and went, and the topics that they pick.

A build leaves the key, the count and the hash of each of its questions for the next build to compare with
(:mod:`~broker_core_spark.store.build_records`).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker_core_spark.arrow_columns import Array
from broker_core_spark.batch.publish_gates import PublishedBefore
from broker_core_spark.batch.segments.question_totals import QuestionTotals
from broker_core_spark.format import KEY_BYTES, CanonicalQuestion, line_key

__all__ = ["UNKNOWN", "GenerationDifferences", "differences_to", "totals_file"]

_SCHEMA: Final = pa.schema([("key", pa.binary(KEY_BYTES)), ("count", pa.int64()), ("crc", pa.uint32())])
#: The count before of a new question, or if no totals of its generation are left.
UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class GenerationDifferences:
    """Differences to the generation ``before``. The columns are in the order of the questions.

    ``added`` are questions that it does not have, ``counts_before`` its counts (:data:`UNKNOWN` without one), and
    ``changed`` questions with another hash. ``compared`` says whether its totals are known. ``removed`` are its
    questions that are no more.
    """

    before: str
    added: Array
    counts_before: Array
    changed: Array
    removed: tuple[CanonicalQuestion, ...]
    compared: bool

    def record(self, counts: Array) -> dict[str, Any]:
        """The numbers of questions by kind of difference, as in the result."""
        known = self.counts_before != UNKNOWN
        return {
            "generation": self.before,
            "added": int(self.added.sum()),
            "removed": len(self.removed),
            "compared": self.compared,
            "changed": int(self.changed.sum()),
            "with_more_topics": int((known & (counts > self.counts_before)).sum()),
            "with_fewer_topics": int((known & (counts < self.counts_before)).sum()),
        }


def totals_file(totals: QuestionTotals) -> bytes:
    """The file of the totals, for the next build."""
    keys = pa.array([question.key for question in totals.questions], _SCHEMA.field("key").type)
    table = pa.Table.from_arrays([keys, pa.array(totals.counts), pa.array(totals.crcs)], schema=_SCHEMA)
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    return bytes(buffer.getvalue())


def differences_to(
    before: PublishedBefore, totals: QuestionTotals, totals_before: bytes | None
) -> GenerationDifferences:
    """Differences of ``totals`` to the generation before, whose :func:`totals_file` is ``totals_before``."""
    lines = [question.line for question in totals.questions]
    keys = pa.array(map(line_key, lines), _SCHEMA.field("key").type)
    table = _SCHEMA.empty_table()
    if totals_before is not None:
        with suppress(pa.ArrowException, OSError):  # a file that is none has no totals
            table = pq.read_table(pa.BufferReader(totals_before), schema=_SCHEMA)
    at = pc.index_in(keys, value_set=table["key"]).fill_null(-1).to_numpy()
    known = at >= 0
    counts_before = np.full(len(lines), UNKNOWN, np.int64)
    counts_before[known] = table["count"].to_numpy()[at[known]]
    changed = known & (counts_before != totals.counts)
    changed[known] |= table["crc"].to_numpy()[at[known]] != totals.crcs[known]
    removed: list[CanonicalQuestion] = []
    for line in sorted(before.lines.difference(lines)):
        with suppress(ValueError, RecursionError):  # a damaged line is no question that went
            removed.append(CanonicalQuestion.parse(line))
    return GenerationDifferences(
        before.generation,
        np.array([line not in before.lines for line in lines], bool),
        counts_before,
        changed,
        tuple(removed),
        len(table) > 0 or not before.lines,
    )
