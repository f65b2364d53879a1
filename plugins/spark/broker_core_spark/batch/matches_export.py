"""The matches of a generation, a row for each topic of each question: a DataFrame that tasks make, and its table.

Tasks make the rows of a segment as Arrow batches of bounded size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names import Mode
from broker_core.quantities import counted
from broker_core_spark.arrow_columns import Array
from broker_core_spark.batch.build_errors import BatchError
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.segments.task_assignment import equal_shares
from broker_core_spark.batch.source_address import is_table_name
from broker_core_spark.batch.spark.run_on_partitions import numbered_partitions
from broker_core_spark.batch.written_table import failing_to_write, write_table
from broker_core_spark.format import (
    KEY_BYTES,
    CanonicalQuestion,
    Manifest,
    NameSelector,
    SegmentEntry,
    SegmentRun,
    joined_rows,
    read_postings,
    segment_runs,
    split_keys,
    stretches,
)
from broker_core_spark.store import fetch_verified, open_store, read_manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "MATCH_SCHEMA",
    "match_batches",
    "matches_address",
    "matches_frame",
    "matches_of_shares",
    "question_columns",
    "write_matches",
]

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
#: Columns of the questions of one namespace and mode: the key of each selector, its parts, and the bytes of its line.
_QUESTION_COLUMNS: Final = pa.schema(
    [
        ("key", pa.binary(KEY_BYTES)),
        MATCH_SCHEMA.field("pattern"),
        MATCH_SCHEMA.field("properties"),
        ("bytes", pa.int64()),
    ]
)
#: The questions of each namespace and mode.
QuestionColumns: TypeAlias = Mapping[tuple[str, Mode], pa.RecordBatch]
#: Rows of a batch at most, and bytes of their patterns and properties.
_ROWS: Final = 131_072
_QUESTION_BYTES: Final = 32 * 1024 * 1024
#: Rows of a task, if the number of tasks is not given.
_TASK_ROWS: Final = 4_000_000
_LEAST_TASKS: Final = 4
#: A byte of postings has more rows than one of names.
_POSTINGS_WEIGHT: Final = 8


def matches_address(address: str, number: int) -> str:
    """The address of the rows of the generation with this number: a folder of it, or the table itself."""
    return address if is_table_name(address) else f"{address.rstrip('/')}/number={number}"


def matches_frame(
    spark: SparkSession,
    store: str,
    options: Mapping[str, str],
    manifest: Manifest,
    published: datetime,
    *,
    matches: int,
    tasks: int | None = None,
) -> DataFrame:
    """The rows of a generation in a store with these options, ``matches`` in all, made when the frame is evaluated.

    At most ``tasks`` tasks make them, by default as many as the rows need.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    most = tasks or max(_LEAST_TASKS, matches // _TASK_ROWS)
    work = [float(entry.size + _POSTINGS_WEIGHT * entry.postings.size) for entry in manifest.segments]
    shares = equal_shares(range(len(work)), work, most) or [[]]
    task = partial(matches_of_shares, store, options, manifest.id, published, shares)
    return numbered_partitions(spark, len(shares)).mapInArrow(task, from_arrow_schema(MATCH_SCHEMA))


def matches_of_shares(
    place: str,
    options: Mapping[str, str],
    generation: str,
    published: datetime,
    shares: Sequence[Sequence[int]],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Rows with :data:`MATCH_SCHEMA` of the shares that the first column of the batches numbers.

    A share has the numbers of segments of a generation in the store at ``place``. Raises
    :exc:`~broker_core_spark.errors.InvalidGeneration` and :exc:`~broker_core_spark.errors.StoreFailed` for files of the
    generation that are damaged or cannot be read.
    """
    for number in (number for batch in batches for number in batch.column(0).to_pylist()):
        store = open_store(place, options)
        manifest = read_manifest(store, generation)
        entries = [manifest.segments[segment] for segment in shares[number]]
        questions = fetch_verified(store, manifest.questions, None)
        namespaces = {namespace for entry in entries for namespace, _, _ in entry.runs}
        questions_of = question_columns(bytes(questions).splitlines(), namespaces)
        for entry in entries:
            names, postings = (fetch_verified(store, file, None) for file in (entry, entry.postings))
            for run in segment_runs(entry, names, read_postings(postings, entry.postings.name)):
                yield from match_batches(run, questions_of, generation, published)


def question_columns(lines: Iterable[bytes], namespaces: Collection[str]) -> QuestionColumns:
    """The questions about ``namespaces`` among the lines of a questions file, as columns by namespace and mode."""
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
    return {
        place: pa.RecordBatch.from_pydict(
            {
                "key": [selector.key for selector in selectors],
                "pattern": [selector.pattern for selector in selectors],
                "properties": [list(selector.properties) for selector in selectors],
                "bytes": [len(selector.line) for selector in selectors],
            },
            schema=_QUESTION_COLUMNS,
        )
        for place, selectors in found.items()
    }


def match_batches(
    run: SegmentRun, questions_of: QuestionColumns, generation: str, published: datetime
) -> Iterator[pa.RecordBatch]:
    """The rows of a run with :data:`MATCH_SCHEMA`: by mode, selector and topic."""
    keys = pa.array(split_keys(run.postings.entries["key"]), pa.binary(KEY_BYTES))
    for mode in Mode:
        columns = questions_of.get((run.namespace, mode))
        if columns is None or not mode.lists(run.domain):
            continue
        numbers = pc.index_in(keys, value_set=columns["key"])
        most = max(1, min(_ROWS, _QUESTION_BYTES // pc.max(columns["bytes"]).as_py()))
        entries = np.flatnonzero(numbers.is_valid().to_numpy(zero_copy_only=False))
        for picked, which in _picked(run, entries, numbers.drop_null().to_numpy(), most):
            questions = pa.array(which)
            local = run.names.names.take(pa.array(picked))
            start = pa.scalar(f"{run.domain}://{run.namespace}/", local.type)
            topics = pc.binary_join_element_wise(start, local, pa.scalar("", local.type))
            yield pa.record_batch(
                [
                    pa.repeat(run.namespace, len(picked)),
                    pa.repeat(mode.name, len(picked)),
                    columns["pattern"].take(questions),
                    columns["properties"].take(questions),
                    topics.cast(pa.string()),
                    pa.repeat(generation, len(picked)),
                    pa.repeat(pa.scalar(published, MATCH_SCHEMA.field("published").type), len(picked)),
                ],
                schema=MATCH_SCHEMA,
            )


def _picked(run: SegmentRun, entries: Array, numbers: Array, most: int) -> Iterator[tuple[Array, Array]]:
    """The picked rows of these entries, and the question of each row, at most ``most`` at once."""
    chosen = run.postings.entries[entries]
    counts = chosen["count"].astype(np.int64)
    for low, high in stretches(counts, most):
        rows = joined_rows(chosen[low:high], run.postings.words, len(run.names))
        which = np.repeat(numbers[low:high], counts[low:high])
        for start in range(0, len(rows), most):
            yield rows[start : start + most], which[start : start + most]


def write_matches(frame: DataFrame, place: str, segments: Sequence[SegmentEntry], matches: int) -> None:
    """Write the rows of a frame at :func:`matches_address`, and compare the number in a folder with ``matches``.

    Raises :exc:`BatchError`.
    """
    spark = frame.sparkSession
    job = SparkJob(
        "export matches",
        {"segments": len(segments), "matches": matches},
        sum(entry.size + entry.postings.size for entry in segments),
    )
    with described_job(spark, job):
        write_table(frame, place)
    if is_table_name(place):
        return
    with failing_to_write(place):
        rows = spark.read.parquet(place).count()
    if rows != matches:
        raise BatchError(
            f"{place}: {counted(rows, 'row', spec=',')}, and the generation has "
            f"{counted(matches, 'match', 'matches', spec=',')}: is it a place that the driver and "
            "all tasks share?"
        )
