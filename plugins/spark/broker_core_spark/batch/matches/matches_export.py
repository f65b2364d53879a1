"""The export of matches: a folder ``number=N`` with the rows of one generation, whole as soon as it has ``_SUCCESS``.

Tasks write the rows (:mod:`.matches_task`). The driver counts them, compares the files, and writes ``_SUCCESS`` last. A
failure removes what was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from broker_core_spark.batch.errors import BatchError
from broker_core_spark.batch.incremental.keep_segments import keep_shares
from broker_core_spark.batch.matches.matches_task import MatchesOfShares, WriteMatches
from broker_core_spark.batch.progress.described_job import described_job
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.reports.parquet_export import check_export
from broker_core_spark.batch.source_address import is_of_spark
from broker_core_spark.batch.spark.run_on_partitions import (
    is_spark_error,
    numbered_partitions,
    run_on_partitions,
    spark_message,
)
from broker_core_spark.errors import StoreFailed
from broker_core_spark.format.manifest import SegmentEntry
from broker_core_spark.store.addressed_folder import AddressedFolder, addressed_folder
from broker_core_spark.store.stored_file import StoredFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from broker_core_spark.batch.build_result import BuildResult
    from broker_core_spark.store.publishing import BuildRun

__all__ = ["check_matches", "matches_folder", "write_matches"]

#: The name by which Spark and schedulers know a folder that is whole.
_WHOLE: Final = "_SUCCESS"
_NUMBERED: Final = re.compile(r"number=([0-9]{1,18})/[^/]+")
#: After this time a folder that is not whole is no export under way.
_GRACE: Final = timedelta(hours=24)
#: Rows of a task, where the number of tasks is not given.
_TASK_ROWS: Final = 4_000_000
_LEAST_TASKS: Final = 4
#: A byte of postings has more rows than one of names.
_POSTINGS_WEIGHT: Final = 8
_DDL: Final = (
    "namespace string, mode string, pattern string, properties map<string,string>, topic string, "
    "generation string, published timestamp"
)


def matches_folder(address: str, number: int) -> str:
    """The address of the rows of the generation with this number."""
    return f"{address.rstrip('/')}/number={number}"


def check_matches(spark: SparkSession, address: str, options: Mapping[str, str] | None = None) -> None:
    """Raise unless rows can be written at ``address``, as far as that shows before a build."""
    if is_of_spark(address):
        check_export(spark, address, options)
    else:
        addressed_folder(address, options).check_writable()


def write_matches(
    spark: SparkSession,
    address: str,
    result: BuildResult,
    run: BuildRun,
    options: Mapping[str, str] | None = None,
    *,
    partitions: int | None = None,
) -> None:
    """Write the rows of a published generation, by at most ``partitions`` tasks. ``options`` are those of buckets.

    The whole export before stays, and older ones are removed; those that Spark wrote stay. Raises :exc:`BatchError`,
    which says that the generation is published. Until the end ``run`` knows what to remove.
    """
    place = matches_folder(address, result.number)
    segments, matches = result.manifest.segments, result.totals.matches
    shares = _shares(segments, partitions or max(_LEAST_TASKS, matches // _TASK_ROWS))
    published = result.published or datetime.now(UTC)
    work = MatchesOfShares(result.store, dict(options or {}), result.generation, published, tuple(shares))
    amounts = {"segments": len(segments), "matches": matches}
    job = SparkJob("export matches", amounts, sum(entry.size + entry.postings.size for entry in segments))
    try:
        if is_of_spark(address):
            _written_by_spark(spark, place, work, job, matches)
            return
        folder = addressed_folder(place, options)
        with run.making(folder):
            _written_by_tasks(spark, folder, work, job, matches)
        _remove_older(addressed_folder(address, options), result.number)
    except (BatchError, StoreFailed) as error:
        raise BatchError(f"Cannot export the matches: {error}; the generation is published") from error


def _shares(segments: Sequence[SegmentEntry], tasks: int) -> list[tuple[int, int]]:
    """Neighbouring segments of about the same work. At least one share, which may have none."""
    work = [float(entry.size + _POSTINGS_WEIGHT * entry.postings.size) for entry in segments]
    shares = keep_shares(range(len(segments)), work, tasks)
    return [(share[0], share[-1] + 1) for share in shares] or [(0, 0)]


def _written_by_tasks(
    spark: SparkSession, folder: AddressedFolder, work: MatchesOfShares, job: SparkJob, matches: int
) -> None:
    # Of a store that begins anew the numbers do too.
    folder.remove([found.path for found in folder.files()])
    task = WriteMatches(work, folder.address)
    results = [
        json.loads(found)
        for found in run_on_partitions(numbered_partitions(spark, len(work.shares)), task, job)
    ]
    _check_rows(folder.address, sum(result["rows"] for result in results), matches)
    written = {name: size for result in results for name, size in result["files"].items()}
    if {found.path: found.size for found in folder.files()} != written:
        raise BatchError(
            f"{folder.address}: the files there are not those that the tasks wrote: on a cluster a path is one that "
            "the driver and all tasks share"
        )
    folder.write(_WHOLE, b"")


def _written_by_spark(
    spark: SparkSession, place: str, work: MatchesOfShares, job: SparkJob, matches: int
) -> None:
    try:
        with described_job(spark, job):
            rows = numbered_partitions(spark, len(work.shares)).mapInArrow(work, _DDL)
            rows.write.mode("overwrite").parquet(place)
            count = spark.read.parquet(place).count()
    except Exception as error:
        if not is_spark_error(error):
            raise
        raise BatchError(f"{place}: {spark_message(error)}") from error
    _check_rows(place, count, matches)


def _check_rows(place: str, rows: int, matches: int) -> None:
    if rows != matches:
        raise BatchError(f"{place}: {rows:,} rows, and the generation has {matches:,} matches")


def _remove_older(folder: AddressedFolder, number: int) -> None:
    """Remove the exports of lower numbers but the newest whole one, and those that cannot be under way any more."""
    older: dict[int, list[StoredFile]] = {}
    for found in folder.files():
        match = _NUMBERED.fullmatch(found.path)
        if match and int(match[1]) < number:
            older.setdefault(int(match[1]), []).append(found)
    whole = sorted(one for one in older if f"number={one}/{_WHOLE}" in {found.path for found in older[one]})
    oldest = datetime.now(UTC) - _GRACE
    for one, files in older.items():
        if one in whole[:-1] or (one not in whole and all(found.modified < oldest for found in files)):
            # The mark of a whole one goes first: what is left of it then is none.
            folder.remove(sorted((found.path for found in files), key=lambda path: not path.endswith(_WHOLE)))
