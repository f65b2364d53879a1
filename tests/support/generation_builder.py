"""A whole generation built in one process, for tests: the bytes that the Spark job must give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core.patterns import compile_pattern
from broker_core_spark.batch.write_manifest import write_manifest
from broker_core_spark.format.canonical_question import (
    ANY_LENGTH,
    DOMAIN_ORDER,
    CanonicalQuestion,
    NameSelector,
    required_selectors,
)
from broker_core_spark.format.manifest import FileEntry, Manifest, SegmentEntry
from broker_core_spark.format.picked_words import Matches
from broker_core_spark.format.postings_file import read_postings
from broker_core_spark.format.segment_boundaries import (
    LARGEST_FACTOR,
    SEGMENT_BYTES,
    begins_segment,
    cut_levels,
    piece_starts,
)
from broker_core_spark.format.segment_reader import SegmentRun, segment_runs
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.store import Store
from broker_core_spark.store.verified_files import fetch_verified, put_all_verified
from tests.support.segment_writer import SegmentWriter

__all__ = [
    "build_generation",
    "mapped_bytes",
    "matches_of",
    "opened_runs",
    "put_segment",
    "stored_runs",
]

#: The local names of each domain of each namespace, in any order.
Catalogue = Mapping[str, Mapping[str, Any]]
#: The properties of topics by their full name without partition suffix.
Properties = Mapping[str, Mapping[str, str]]


def build_generation(
    store: Store,
    catalogue: Catalogue,
    questions: Iterable[CanonicalQuestion],
    *,
    catalogue_id: str,
    versions: Mapping[str, int | None] | None = None,
    properties: Properties | None = None,
    property_keys: Iterable[str] = (),
    segment_bytes: int = SEGMENT_BYTES,
    stamps: Mapping[str, str] | None = None,
    largest_segment_bytes: int | None = None,
) -> Manifest:
    """Write all files of a generation. :mod:`broker_core_spark.store.publishing` publishes it.

    Without ``versions`` the catalogue is static. Raises :exc:`~broker_core.errors.InvalidPattern` for a pattern that
    RE2 refuses.
    """
    questions = list(questions)
    required = required_selectors(questions)
    largest = largest_segment_bytes or LARGEST_FACTOR * segment_bytes
    entries = list(_segments(store, catalogue, required, properties or {}, segment_bytes, largest))
    return write_manifest(
        store,
        catalogue_id=catalogue_id,
        versions=dict.fromkeys(catalogue) if versions is None else versions,
        segments=entries,
        questions=questions,
        property_keys=property_keys,
        static=versions is None,
        segment_bytes=segment_bytes,
        stamps=stamps,
        largest_segment_bytes=largest_segment_bytes,
    )


def _segments(
    store: Store,
    catalogue: Catalogue,
    required: Mapping[tuple[str, str], Sequence[NameSelector]],
    properties: Properties,
    target: int,
    largest: int,
) -> Iterator[SegmentEntry]:
    """Write one segment after the other."""
    stretch: list[EncodedNames] = []
    for names, cut in _runs(catalogue, target):
        if cut and stretch:
            yield from _stretch(store, stretch, required, properties, target, largest)
            stretch = []
        stretch.append(names)
    if stretch:
        yield from _stretch(store, stretch, required, properties, target, largest)


def _stretch(
    store: Store,
    runs: Sequence[EncodedNames],
    required: Mapping[tuple[str, str], Sequence[NameSelector]],
    properties: Properties,
    target: int,
    largest: int,
) -> Iterator[SegmentEntry]:
    """Write the segments of what lies between two boundaries: one, or pieces of it."""
    columns = [cut_levels(str(names.namespace), names.domain, names.names, target=target) for names in runs]
    levels, sizes = (np.concatenate(column) for column in zip(*columns, strict=True))
    for low, high in pairwise([*piece_starts(levels, sizes, largest), len(sizes)]):
        writer = SegmentWriter(continues=low > 0)
        begin = 0
        for names in runs:
            first, last = max(low, begin) - begin, min(high, begin + len(names)) - begin
            begin += len(names)
            if first < last:
                part = names.slice(first, last)
                selectors = required.get((str(names.namespace), names.domain), ())
                writer.add_run(part, selectors, matches_of(part, selectors, properties))
        yield put_segment(store, writer)


def _runs(catalogue: Catalogue, target: int) -> Iterator[tuple[EncodedNames, bool]]:
    """The runs in the order of all names, each with whether it begins a segment."""
    for namespace in sorted(catalogue):
        for domain in DOMAIN_ORDER:
            names = EncodedNames.of(namespace, domain, catalogue[namespace].get(domain, []))
            if not len(names):
                continue
            cuts = np.flatnonzero(begins_segment(namespace, domain, names.names, target=target)).tolist()
            edges = sorted({0, *cuts, len(names)})
            for start, stop in pairwise(edges):
                yield names.slice(start, stop), start in cuts


def put_segment(store: Store, writer: SegmentWriter) -> SegmentEntry:
    """Put the files of a segment into a store."""
    segment = writer.finish()
    files = [(segment.entry, segment.names.data), (segment.entry.postings, segment.postings.data)]
    put_all_verified(store, files)
    return segment.entry


def stored_runs(store: Store, entry: SegmentEntry) -> Iterator[SegmentRun]:
    """The runs of a segment of a store."""
    names, postings = (fetch_verified(store, file, None) for file in (entry, entry.postings))
    return segment_runs(entry, names, read_postings(postings, entry.postings.name))


def mapped_bytes(generation: Generation) -> list[bytes]:
    """All that an open generation answers from."""
    opened = generation.opened
    postings = [run for segment in opened.segments.values() for run in segment.postings]
    return [
        *(bytes(buffer) for column in (opened.names, opened.lines) for buffer in column.buffers()[1:]),
        *(column.tobytes() for run in postings for column in (run.entries, run.words)),
    ]


def opened_runs(writer: SegmentWriter) -> Iterator[SegmentRun]:
    """The runs of a segment that is written and read back."""
    made = writer.finish()
    names, postings = (pa.py_buffer(b"".join(part.data)) for part in (made.names, made.postings))
    entry = replace(made.entry, name="segments/x.seg", postings=FileEntry("postings/x.post", postings.size))
    return segment_runs(entry, names, read_postings(postings, entry.postings.name))


def matches_of(
    names: EncodedNames, selectors: Sequence[NameSelector], properties: Properties
) -> Iterator[tuple[NameSelector, Matches]]:
    """The names that each selector picks, by matching pattern after pattern over all names."""
    for selector in selectors:
        picked: Matches = (0, len(names))
        if selector.pattern is not None:
            picked = names.matching(compile_pattern(selector.pattern, max_length=ANY_LENGTH))
        if selector.properties:
            rows = np.arange(*picked) if isinstance(picked, tuple) else picked
            picked = rows[_with_properties(names, rows, selector, properties)]
        yield selector, picked


def _with_properties(
    names: EncodedNames, rows: np.ndarray[Any, Any], selector: NameSelector, properties: Properties
) -> np.ndarray[Any, Any]:
    """Which topics (bool) have all of the selector's properties."""
    wanted = selector.properties
    none: Mapping[str, str] = {}
    forms = names.matched.take(pa.array(rows)).to_pylist()
    found = (properties.get(f"{names.domain}://{form}", none) for form in forms)
    return np.fromiter(
        (all(own.get(key) == value for key, value in wanted) for own in found), bool, count=len(rows)
    )
