"""Tasks of Spark that carry segments of the last generation over, and their shares of the work."""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core_spark.batch.incremental.carry_segments import carry_segments
from broker_core_spark.batch.incremental.changed_names import NameChanges
from broker_core_spark.batch.incremental.segment_reuse import SegmentReuse
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.segments.segment_puts import StoredSegments
from broker_core_spark.batch.segments.segment_task import ordered_names
from broker_core_spark.batch.segments.selector_cost import namespace_costs
from broker_core_spark.batch.segments.staged_selectors import KeptSelectors, stage_selectors
from broker_core_spark.batch.segments.task_assignment import blocks_of_runs, equal_shares
from broker_core_spark.batch.staging.numbered_work import run_numbered
from broker_core_spark.batch.staging.sorted_runs import SortedRun, names_digest
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import CanonicalQuestion, NameSelector, required_selectors
from broker_core_spark.store import Store, read_build_record, read_manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["added_selectors", "keep_segments", "keep_share"]

#: Seconds of one core: reading, comparing and writing a name of a segment, reading the postings of a kept one, and
#: compiling a selector and matching few names with it.
_NAME_SECONDS: Final = 0.5e-6
_KEPT_NAME_SECONDS: Final = 0.1e-6
_SELECTOR_SECONDS: Final = 120e-6
#: Seconds of work for each task, if the number of tasks is not given.
_TASK_WORK: Final = 5.0
#: Little work is divided too, between two threads: a small share's memory is used again by the next.
_LEAST_TASKS: Final = 4
_Place: TypeAlias = tuple[str, str]
_Selectors: TypeAlias = Mapping[_Place, Sequence[NameSelector]]


def keep_segments(
    spark: SparkSession,
    store: Store,
    staging: StagingArea,
    reuse: SegmentReuse,
    runs: Sequence[SortedRun],
    questions: Sequence[CanonicalQuestion],
    partitions: int | None = None,
) -> StoredSegments:
    """Carry the segments that ``reuse`` keeps over to the names in ``runs`` and to ``questions``.

    ``partitions`` is the largest number of tasks. Raises :exc:`InvalidGeneration` if nothing of the last generation can
    be kept.
    """
    manifest = reuse.previous.manifest
    stretches = manifest.stretches()
    numbers = sorted(reuse.carried)
    if not numbers:
        return StoredSegments()
    now = required_selectors(questions)
    before = (
        now if reuse.previous.questions == tuple(questions) else required_selectors(reuse.previous.questions)
    )
    added = added_selectors(before, now, with_properties=reuse.compared)
    costs = namespace_costs(added)
    # With properties their values are compared too.
    record = read_build_record(store, manifest.id) if reuse.compared and not staging.property_keys else None
    digests = (record or {}).get("digests")
    # The record has no checksum: what is no text there is no digest.
    before_of = {
        number: str(digests.get(stretches[number][-1].name, "")) if isinstance(digests, dict) else ""
        for number in numbers
    }
    # If one run has all names of a stretch, and they are the former ones, they are not read again.
    staged_digests = {(number, digest) for run in runs for number, digest in run.digests.items()}
    runs_of = np.sum(
        [np.unpackbits(np.frombuffer(run.reached, np.uint8)) for run in runs if run.reached], axis=0
    )
    touched = {
        number
        for number in numbers
        if reuse.carried[number]
        or (reuse.compared and not ((number, before_of[number]) in staged_digests and runs_of[number] == 1))
    }
    work = [
        sum(
            names * (_NAME_SECONDS if number in touched else _KEPT_NAME_SECONDS)
            + (number in touched) * len(now.get((namespace, domain), ())) * _SELECTOR_SECONDS
            + (names * costs[namespace].seconds if namespace in costs else 0.0)
            for entry in stretches[number]
            for namespace, domain, names in entry.runs
        )
        for number in numbers
    ]
    shares = equal_shares(numbers, work, partitions or max(_LEAST_TASKS, round(sum(work) / _TASK_WORK)))
    folder = f"{staging.folder}-keep-{uuid.uuid4().hex}"
    wanted = stage_selectors(store, f"{folder}-now", now)
    known = wanted if before == now else stage_selectors(store, f"{folder}-before", before)
    staged = [known, wanted, stage_selectors(store, f"{folder}-added", added)]
    every = reuse.previous.ranges
    work_of: list[dict[str, Any]] = []
    for share in shares:
        ranges = {at: every[at] for at in share if at in touched}
        edges = list(ranges.values())
        low, high = every[share[0]][0], every[share[-1]][1]
        work_of.append(
            {
                "generation": manifest.id,
                "stretches": [[at, reuse.carried[at], ranges.get(at), before_of[at]] for at in share],
                "blocks": blocks_of_runs(runs, edges[0][0], edges[-1][1]) if edges else {},
                "compared": reuse.compared,
                "selectors": [found.between(low, high) for found in staged],
            }
        )
    sizes = [entry.size for number in numbers for entry in stretches[number]]
    pool = pa.default_memory_pool()
    # Arrow's own allocator takes memory in pages of 2 MiB, which a new process gets slowly, and an increment ends
    # before it uses much of it again. Workers of a full build do, and need a quarter more memory without it.
    pa.set_memory_pool(pool if "ARROW_DEFAULT_MEMORY_POOL" in os.environ else pa.system_memory_pool())
    try:
        results: list[StoredSegments] = run_numbered(
            spark,
            staging,
            work_of,
            keep_share,
            SparkJob(
                "carry segments over", {"segments": len(sizes), "questions": len(questions)}, sum(sizes)
            ),
            seconds=math.inf if partitions else sum(work),
        )
    finally:
        pa.set_memory_pool(pool)
    return StoredSegments(
        tuple(segment for result in results for segment in result.segments),
        tuple(block for result in results for block in result.tallies),
        anew=tuple(sorted(number for result in results for number in result.anew)),
    )


def added_selectors(
    before: _Selectors, now: _Selectors, *, with_properties: bool = False
) -> dict[_Place, list[NameSelector]]:
    """The selectors of each (namespace, domain) that only ``now`` has, sorted by key.

    ``with_properties`` adds all that select by properties.
    """
    added: dict[_Place, list[NameSelector]] = {}
    for place, selectors in now.items():
        known = set(before.get(place, ()))
        new = [
            selector
            for selector in selectors
            if selector not in known or (with_properties and selector.properties)
        ]
        if new:
            added[place] = new
    return added


def keep_share(staging: StagingArea, store: Store, _number: int, record: Mapping[str, Any]) -> StoredSegments:
    """Carry a share of the segments over: the work of a numbered task."""
    keys = staging.property_keys

    def changes(changed: tuple[bytes, ...], within: tuple[bytes, bytes] | None, before: str) -> NameChanges:
        if within is None:
            return NameChanges(digest=before)
        staged, twice = ordered_names(store, record["blocks"], within, keys)
        if not record["compared"]:
            return NameChanges(changed, staged, len(twice))
        return NameChanges(None, staged, len(twice), names_digest(staged), before)

    return carry_segments(
        store,
        read_manifest(store, record["generation"]),
        ((number, changes(*rest)) for number, *rest in record["stretches"]),
        KeptSelectors(store, *record["selectors"]),
        f"{staging.folder}-kept",
        keys,
    )
