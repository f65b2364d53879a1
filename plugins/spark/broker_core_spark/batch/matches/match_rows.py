"""The rows of matches of a segment: one for each topic of each question, as Arrow batches of bounded size."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names import Mode
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import (
    KEY_BYTES,
    CanonicalQuestion,
    NameSelector,
    SegmentRun,
    joined_rows,
    split_keys,
)

__all__ = ["MATCH_SCHEMA", "AskedColumns", "AskedOf", "asked_columns", "match_batches"]

MATCH_SCHEMA: Final = pa.schema(
    [
        ("namespace", pa.string()),
        ("mode", pa.string()),
        ("pattern", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("topic", pa.string()),
        ("generation", pa.string()),
        ("published", pa.timestamp("us", "UTC")),
    ]
)
#: Rows of a batch at most, and bytes of their patterns and properties.
_ROWS: Final = 131_072
_QUESTION_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class AskedColumns:
    """The questions of one namespace and mode: the keys of their selectors, their patterns and their properties.

    ``rows`` is the most rows of a batch.
    """

    keys: pa.Array[Any]
    patterns: pa.Array[Any]
    properties: pa.Array[Any]
    rows: int

    @classmethod
    def of(cls, selectors: Sequence[NameSelector]) -> AskedColumns:
        """The columns of these selectors."""
        longest = max(len(selector.line) for selector in selectors)
        properties = [list(selector.properties) for selector in selectors]
        return cls(
            pa.array([selector.key for selector in selectors], pa.binary(KEY_BYTES)),
            pa.array([selector.pattern for selector in selectors], pa.string()),
            pa.array(properties, MATCH_SCHEMA.field("properties").type),
            max(1, min(_ROWS, _QUESTION_BYTES // longest)),
        )


AskedOf: TypeAlias = Mapping[tuple[str, Mode], AskedColumns]


def asked_columns(lines: Iterable[bytes], namespaces: Collection[str]) -> AskedOf:
    """The questions about ``namespaces`` among the lines of a questions file, by namespace and mode."""
    # Most lines of a large file are of other namespaces, and need not be parsed.
    wanted = {
        CanonicalQuestion.of_text(namespace, mode, None).line.partition(b'"pattern":')[0]: (namespace, mode)
        for namespace in namespaces
        for mode in Mode
    }
    found: dict[tuple[str, Mode], list[NameSelector]] = {}
    for line in lines:
        place = wanted.get(line.partition(b'"pattern":')[0])
        if place is not None:
            found.setdefault(place, []).append(CanonicalQuestion.parse(line).selector)
    return {place: AskedColumns.of(selectors) for place, selectors in found.items()}


def match_batches(
    run: SegmentRun, asked: AskedOf, generation: str, published: datetime
) -> Iterator[pa.RecordBatch]:
    """The rows of a run with :data:`MATCH_SCHEMA`: by mode, selector and topic."""
    keys = pa.array(split_keys(run.entries["key"]), pa.binary(KEY_BYTES))
    for mode in Mode:
        columns = asked.get((run.namespace, mode))
        if columns is None or not mode.lists(run.domain):
            continue
        numbers = pc.index_in(keys, value_set=columns.keys)
        entries = np.flatnonzero(numbers.is_valid().to_numpy(zero_copy_only=False))
        for picked, which in _picked(run, entries, numbers.drop_null().to_numpy(), columns.rows):
            questions = pa.array(which)
            local = run.names.names.take(pa.array(picked))
            start = pa.scalar(f"{run.domain}://{run.namespace}/", local.type)
            topics = pc.binary_join_element_wise(start, local, pa.scalar("", local.type))
            yield pa.record_batch(
                [
                    pa.repeat(run.namespace, len(picked)),
                    pa.repeat(mode.name, len(picked)),
                    columns.patterns.take(questions),
                    columns.properties.take(questions),
                    topics.cast(pa.string()),
                    pa.repeat(generation, len(picked)),
                    pa.repeat(pa.scalar(published, MATCH_SCHEMA.field("published").type), len(picked)),
                ],
                schema=MATCH_SCHEMA,
            )


def _picked(run: SegmentRun, entries: Array, numbers: Array, most: int) -> Iterator[tuple[Array, Array]]:
    """(rows of names, the question of each) of these entries, at most ``most`` at once."""
    chosen = run.entries[entries]
    counts = chosen["count"].astype(np.int64)
    ends = np.flatnonzero(np.diff(np.cumsum(counts) // most)) + 1
    for part in np.split(np.arange(len(chosen)), ends):
        if not len(part):
            continue
        rows = joined_rows(chosen[part], run.postings.words, len(run.names))
        which = np.repeat(numbers[part], counts[part])
        for start in range(0, len(rows), most):
            yield rows[start : start + most], which[start : start + most]
