"""Reading the segments that an incremental build keeps, whole, and adding the postings of selectors that are new.

Names are kept as they are. Where a namespace is asked other selectors than before, the added ones are matched with the
names of its segments, and the postings of removed ones are left out. The catalogue is not read for it.

A segment that was damaged in the store is made anew. If a segment has the right checksum and still contradicts the
manifest or the format, its writer was faulty, and nothing of that generation is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from broker_core_spark.batch.incremental.segment_reuse import first_key
from broker_core_spark.batch.segments.match_selectors import CompiledPatterns, match_selectors
from broker_core_spark.batch.segments.segment_result import SegmentResult
from broker_core_spark.batch.segments.tallies import TallyBlock, TallyWriter
from broker_core_spark.errors import DamagedFile, InvalidGeneration
from broker_core_spark.format.canonical_question import NameSelector
from broker_core_spark.format.manifest import FileEntry, Manifest, SegmentEntry
from broker_core_spark.format.postings_collector import PostingsCollector
from broker_core_spark.format.postings_file import StoredPostings, read_postings
from broker_core_spark.format.postings_merge import merge_postings
from broker_core_spark.format.segment_checks import SegmentChecks, last_place
from broker_core_spark.format.segment_reader import Segment, SegmentRun
from broker_core_spark.format.selector_keys import NOTHING_ASKED, SelectorKeys
from broker_core_spark.store import Store
from broker_core_spark.store.verified_files import fetch_verified, put_verified

__all__ = ["KeptSelectors", "RereadSegments", "reread_segments"]

_Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class KeptSelectors:
    """The selectors of each (namespace, domain): the keys of the last generation's, the keys of the new one's.

    ``added`` are the selectors, with their keys, that only the new one has. None of them has properties.
    """

    before: Mapping[_Place, SelectorKeys]
    now: Mapping[_Place, SelectorKeys]
    added: Mapping[_Place, Sequence[tuple[bytes, NameSelector]]] = field(default_factory=dict)

    def changed(self, entry: SegmentEntry) -> bool:
        """Whether a segment has a run that is asked other selectors than before."""
        places = {(namespace, domain) for namespace, domain, _ in entry.runs}
        return any(
            self.before.get(place, NOTHING_ASKED) != self.now.get(place, NOTHING_ASKED) for place in places
        )


@dataclass(frozen=True, slots=True)
class RereadSegments:
    """The segments in the store, where the tallies of their selectors are, and the names of the damaged ones."""

    segments: tuple[SegmentResult, ...] = ()
    tallies: tuple[TallyBlock, ...] = ()
    damaged: frozenset[str] = frozenset()


def reread_segments(
    store: Store, manifest: Manifest, numbers: Iterable[int], selectors: KeptSelectors, folder: str
) -> RereadSegments:
    """Read the segments of ``manifest`` with these numbers, which ascend, and write the postings that change.

    ``folder`` is the prefix of the file of tallies. With a damaged segment the tallies are of no use: they are those
    of the others. Raises :exc:`InvalidGeneration` for a segment with the right checksum and wrong names, order,
    boundaries or selectors.
    """
    checks = SegmentChecks(manifest, keys=selectors.before)
    patterns = CompiledPatterns()
    results: list[SegmentResult] = []
    damaged: set[str] = set()
    tallies = TallyWriter()
    last: int | None = None
    for number in numbers:
        entry = manifest.segments[number]
        try:
            data, postings = (fetch_verified(store, file, None) for file in (entry, entry.postings))
        except (InvalidGeneration, DamagedFile):
            damaged.add(entry.name)
            continue
        if last is None or number != last + 1:
            tallies.begin(first_key(entry))
        last = number
        stored = read_postings(postings, entry.postings.name)
        runs = list(
            checks.runs(number, Segment(data, entry.name, stored, entry.postings.name), every_boundary=True)
        )
        checks.check_end(number, last_place(runs[-1]))
        result = SegmentResult(entry)
        if selectors.changed(entry):
            result, stored = _merged(store, entry, runs, stored, selectors, patterns)
        results.append(result)
        for run in stored:
            tallies.add(run.namespace, run.domain, run.entries)
    return RereadSegments(tuple(results), tuple(tallies.finish(store, folder)), frozenset(damaged))


def _merged(
    store: Store,
    entry: SegmentEntry,
    runs: Sequence[SegmentRun],
    stored: Sequence[StoredPostings],
    selectors: KeptSelectors,
    patterns: CompiledPatterns,
) -> tuple[SegmentResult, list[StoredPostings]]:
    """The segment with the postings of the selectors of now, and these postings."""
    added = [_added(run, selectors.added.get((run.namespace, run.domain), ()), patterns) for run in runs]
    written = merge_postings(entry.runs, [stored, added], selectors.now)
    with written.file:
        data = written.file.read()
        file = FileEntry(written.name, written.size)
        new = put_verified(store, file, data)
    return SegmentResult(replace(entry, postings=file), new), read_postings(pa.py_buffer(data), written.name)


def _added(
    run: SegmentRun, selectors: Sequence[tuple[bytes, NameSelector]], patterns: CompiledPatterns
) -> StoredPostings:
    """What added selectors pick of a run."""
    collected = PostingsCollector(run.names)
    for key, found in match_selectors(run.names, {}, selectors, patterns):
        collected.add(key, found)
    _, (made,) = collected.finish()
    words = np.concatenate([np.empty(0, "<u4"), *made.words])
    return StoredPostings(
        run.namespace, run.domain, NOTHING_ASKED.digest, len(run.names), made.entries, words
    )
