"""Keeping segments of the last generation: tasks read them, and write the postings where other questions are asked."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from broker_core_spark.batch.incremental.reread_segments import KeptSelectors, RereadSegments, reread_segments
from broker_core_spark.batch.incremental.segment_reuse import PreviousGeneration
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.segments.segment_result import SegmentResult
from broker_core_spark.batch.segments.selector_cost import namespace_costs
from broker_core_spark.batch.segments.staged_selectors import StagedSelectors, stage_selectors
from broker_core_spark.batch.segments.tallies import TallyBlock
from broker_core_spark.batch.spark.run_on_partitions import numbered_partitions, run_on_partitions
from broker_core_spark.batch.staging.numbered_work import numbered_work
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion, NameSelector, required_selectors
from broker_core_spark.format.manifest import SegmentEntry
from broker_core_spark.store import Store
from broker_core_spark.store.read_manifest import read_manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KeepTask", "added_selectors", "keep_segments", "keep_shares"]

#: Seconds of one core: reading and checking a name of a segment.
_NAME_SECONDS: Final = 0.5e-6
#: Seconds of work for each task, where the number of tasks is not given.
_TASK_WORK: Final = 5.0
_Place: TypeAlias = tuple[str, str]
_Selectors: TypeAlias = Mapping[_Place, Sequence[NameSelector]]


def keep_segments(
    spark: SparkSession,
    store: Store,
    staging: StagingArea,
    previous: PreviousGeneration,
    questions: Sequence[CanonicalQuestion],
    kept: Sequence[SegmentEntry],
    partitions: int | None = None,
) -> RereadSegments:
    """Read the segments of ``kept`` and give them the postings of ``questions``.

    ``partitions`` is the largest number of tasks. With damaged segments the result is their names alone. Raises
    :exc:`InvalidGeneration` where nothing of the last generation can be kept.
    """
    wanted = {entry.name for entry in kept}
    entries = previous.manifest.segments
    numbers = [number for number, entry in enumerate(entries) if entry.name in wanted]
    if not numbers:
        return RereadSegments()
    before, now = required_selectors(previous.questions), required_selectors(questions)
    added = added_selectors(before, now)
    costs = namespace_costs(added)
    work = [
        sum(
            names * (_NAME_SECONDS + (costs[namespace].seconds if namespace in costs else 0.0))
            for namespace, _, names in entries[number].runs
        )
        for number in numbers
    ]
    shares = keep_shares(numbers, work, partitions or max(2, round(sum(work) / _TASK_WORK)))
    folder = f"{staging.folder}-keep-{uuid.uuid4().hex}"
    staged = [
        stage_selectors(store, f"{folder}-{title}", found)
        for title, found in (("before", before), ("now", now), ("added", added))
    ]
    prefix = f"{folder}-"
    for number, share in enumerate(shares):
        places = sorted({(namespace, domain) for at in share for namespace, domain, _ in entries[at].runs})
        record = {
            "generation": previous.manifest.id,
            "segments": share,
            "selectors": [found.of(places).record() for found in staged],
        }
        store.put_new(f"{prefix}{number}.json", json.dumps(record).encode())
    task = KeepTask(staging, prefix)
    size = sum(entries[number].size for number in numbers)
    job = SparkJob("read kept segments", {"segments": len(numbers), "questions": len(questions)}, size)
    results = [
        json.loads(found) for found in run_on_partitions(numbered_partitions(spark, len(shares)), task, job)
    ]
    for result in results:
        if result["invalid"] is not None:
            raise InvalidGeneration(*result["invalid"])
    damaged = frozenset(name for result in results for name in result["damaged"])
    if damaged:
        return RereadSegments(damaged=damaged)
    return RereadSegments(
        tuple(SegmentResult.of(segment) for result in results for segment in result["segments"]),
        tuple(TallyBlock.of(block) for result in results for block in result["tallies"]),
    )


def added_selectors(before: _Selectors, now: _Selectors) -> dict[_Place, list[NameSelector]]:
    """The selectors of each (namespace, domain) that only ``now`` has, sorted by key."""
    added: dict[_Place, list[NameSelector]] = {}
    for place, selectors in now.items():
        known = set(before.get(place, ()))
        new = [selector for selector in selectors if selector not in known]
        if new:
            added[place] = new
    return added


def keep_shares(numbers: Sequence[int], work: Sequence[float], tasks: int) -> list[list[int]]:
    """Neighbouring numbers in at most ``tasks`` shares of about the same work."""
    total = sum(work)
    shares: dict[int, list[int]] = {}
    done = 0.0
    for number, own in zip(numbers, work, strict=True):
        # The middle of a segment lies in the equal share of its task.
        share = int((done + own / 2) * tasks / total) if total else 0
        shares.setdefault(share, []).append(number)
        done += own
    return list(shares.values())


@dataclass(frozen=True, slots=True)
class KeepTask:
    """The work of numbered tasks, pickled by reference into the executors. ``assignments`` is a prefix of paths."""

    staging: StagingArea
    assignments: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        store = self.staging.open()
        for _, data in numbered_work(store, self.assignments, batches):
            yield json.dumps(self._kept(store, json.loads(data))).encode()

    def _kept(self, store: Store, record: Mapping[str, Any]) -> dict[str, Any]:
        invalid: list[str] | None = None
        found = RereadSegments()
        try:
            manifest = read_manifest(store, record["generation"])
            selectors = _read_selectors(store, *map(StagedSelectors.of_record, record["selectors"]))
            found = reread_segments(
                store, manifest, record["segments"], selectors, f"{self.staging.folder}-kept"
            )
        except InvalidGeneration as error:
            # Another try would not help.
            invalid = [error.file, error.reason]
        return {
            "segments": [segment.record() for segment in found.segments],
            "tallies": [block.record() for block in found.tallies],
            "damaged": sorted(found.damaged),
            "invalid": invalid,
        }


def _read_selectors(
    store: Store, before: StagedSelectors, now: StagedSelectors, added: StagedSelectors
) -> KeptSelectors:
    return KeptSelectors(
        {place: before.keys(store, place) for place in before.places},
        {place: now.keys(store, place) for place in now.places},
        {place: added.read(store, place).selectors for place in added.places},
    )
