"""Choosing the parts of the last generation to keep: stretches of segments to carry over, and ranges of keys to make
anew.

Either the catalogue knows which names may have changed, and only they are staged. Or it does not, as a file: then all
names are staged, and compared with those of the last generation when the segments are carried over
(:mod:`.carry_segments`). A stretch is made anew if it begins at another name than before, or is cut in two. A namespace
is made anew if its changes are not known, or if a question with properties was added, because segments have no
properties.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import pyarrow as pa

from broker_core import EncodedNames
from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.build_errors import NothingToKeep
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot
from broker_core_spark.batch.staging.order_keys import (
    NAMESPACE_END,
    NEXT,
    KeyRanges,
    end_of_namespace,
    first_of_namespace,
    order_key,
)
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.errors import InvalidGeneration, StoreFailed
from broker_core_spark.format import (
    HEADER,
    LARGEST_FACTOR,
    NAMES,
    SEGMENT_BYTES,
    CanonicalQuestion,
    Manifest,
    SegmentEntry,
    begins_segment,
    check_first_names,
    read_questions,
)
from broker_core_spark.store import Store, fetch_verified, read_manifest

__all__ = [
    "PreviousGeneration",
    "SegmentReuse",
    "first_key",
    "read_previous_generation",
    "reusable_segments",
]


@dataclass(frozen=True)
class PreviousGeneration:
    """The published generation and its questions."""

    manifest: Manifest
    questions: tuple[CanonicalQuestion, ...]

    @cached_property
    def ranges(self) -> list[tuple[bytes, bytes]]:
        """The range of keys of each stretch (empty: no end). The first one begins before all keys."""
        firsts = [first_key(stretch[0]) for stretch in self.manifest.stretches()[1:]]
        return list(pairwise([b"", *firsts, b""]))

    @property
    def firsts(self) -> list[bytes]:
        """The key in front of each stretch."""
        return [low for low, _ in self.ranges]


@dataclass(frozen=True, slots=True)
class SegmentReuse:
    """The use of each stretch of segments of the last generation.

    ``carried`` are the numbers of the stretches to carry over, each with the keys of its names that may have changed.
    ``anew`` are the ranges of keys to make anew, in order. ``compared`` says that all names are staged, because the
    changes are not known. ``now`` are the asked namespaces of the catalogue.
    """

    previous: PreviousGeneration
    carried: Mapping[int, tuple[bytes, ...]]
    anew: tuple[tuple[bytes, bytes], ...] = ()
    compared: bool = False
    now: frozenset[str] = frozenset()

    @property
    def staged(self) -> KeyRanges | None:
        """The ranges of keys to stage: the ranges to make anew, and each name that may have changed."""
        if self.compared:
            return None
        names = [(key, key + NEXT) for keys in self.carried.values() for key in keys]
        return sorted([*self.anew, *names])

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of the names to stage."""
        changed = {key[: key.index(NAMESPACE_END)].decode() for keys in self.carried.values() for key in keys}
        return self.now & (changed | {name for name in self.now if _overlaps(name, self.anew)})

    @property
    def unread(self) -> frozenset[str]:
        """The namespaces that the last generation knows, and of which no names are staged."""
        if self.compared:
            return frozenset()
        return self.now.intersection(self.previous.manifest.namespaces) - self.namespaces

    def without(self, stretches: Iterable[int]) -> SegmentReuse:
        """The reuse without some stretches, which are made anew."""
        again = set(stretches)
        carried = {number: keys for number, keys in self.carried.items() if number not in again}
        every = self.previous.ranges
        anew = _joined_neighbours(every[at] for at in range(len(every)) if at not in carried)
        return replace(self, carried=carried, anew=tuple(anew))

    def cut_by(self, runs: Sequence[SortedRun]) -> SegmentReuse:
        """The reuse with all names staged in ``runs``: stretches that begin at other names are made anew."""
        firsts, first_name = self.previous.firsts, first_key(self.previous.manifest.segments[0])
        starts = {key for run in runs for key in run.segment_starts} - {first_name}
        again = {at for key in starts ^ set(firsts[1:]) for at in _stretches_of(firsts, key)}
        if any(block.first < first_name for run in runs for block in run.blocks):
            again.add(0)
        return self.without(again)


def read_previous_generation(store: Store, generation: str) -> PreviousGeneration:
    """The generation of an id, with its questions.

    Only the first name of each segment is read. It must be the manifest's and begin a segment, because names are
    assigned to segments by it. An unreadable segment is left to the caller. Raises :exc:`InvalidGeneration` and
    :exc:`DamagedFile` for a damaged generation, and :exc:`NoSuchGeneration`.
    """
    manifest = read_manifest(store, generation)
    lines = fetch_verified(store, manifest.questions, None)
    questions = tuple(read_questions(lines, manifest))
    check_first_names(manifest)
    for entry in manifest.segments:
        with suppress(StoreFailed):
            if not _begins_with(store, entry):
                raise InvalidGeneration(entry.name, "its first name is not the one that the manifest has")
    return PreviousGeneration(manifest, questions)


def _begins_with(store: Store, entry: SegmentEntry) -> bool:
    """Whether the first name in a segment's file is the manifest's."""
    namespace, domain, names = entry.runs[0]
    expected: bytes = EncodedNames.of(namespace, domain, [entry.first_local]).fields[0].as_py()
    place = NAMES.place(HEADER.size, names, len(expected))
    if place.end > entry.size:
        return False
    (offsets_at, _), (fields_at, size) = place.sections
    offsets = store.get_range(entry.name, offsets_at, offsets_at + 8)
    found = store.get_range(entry.name, fields_at, fields_at + size)
    return offsets == bytes(4) + len(expected).to_bytes(4, "little") and found == expected


def reusable_segments(
    previous: PreviousGeneration,
    snapshot: CatalogueSnapshot,
    questions: Sequence[CanonicalQuestion],
    *,
    property_keys: Sequence[str] = (),
    target: int = SEGMENT_BYTES,
    largest: int | None = None,
) -> SegmentReuse:
    """The parts of ``previous`` to keep for these questions of this snapshot. Raises :exc:`NothingToKeep`."""
    manifest = previous.manifest
    _check_kind(manifest, snapshot, (target, largest or LARGEST_FACTOR * target))
    firsts, first_name = previous.firsts, first_key(manifest.segments[0])
    named = {question.namespace for question in questions}
    now = {name: version for name in named if (version := snapshot.version(name)) is not None}
    anew = _namespaces_with_added_properties(previous.questions, questions)
    try:
        if manifest.static and (snapshot.unversioned or manifest.property_keys != tuple(property_keys)):
            raise NothingToKeep(snapshot.unversioned)
        names, whole = _changed(manifest, now, anew, snapshot, property_keys)
    except NothingToKeep:
        if not manifest.static:
            raise
        every = dict.fromkeys(range(len(firsts)), ())
        return SegmentReuse(previous, every, compared=True)
    rebuilt: set[int] = set()
    for low, high in whole:
        rebuilt.update(range(bisect_right(firsts, low) - 1, max(bisect_left(firsts, high), 1)))
    changed: dict[int, list[bytes]] = {}
    for namespace, found in names.items():
        for key, begins in _keys(namespace, found, target):
            # Before the first name of all, that name may begin a segment by itself.
            if begins or key < first_name:
                rebuilt.update(_stretches_of(firsts, key))
            changed.setdefault(bisect_right(firsts, key) - 1, []).append(key)
    carried = {at: tuple(sorted(changed.get(at, ()))) for at in range(len(firsts)) if at not in rebuilt}
    rest = _joined_neighbours(previous.ranges[at] for at in sorted(rebuilt))
    return SegmentReuse(previous, carried, tuple(rest), now=frozenset(now))


def _stretches_of(firsts: Sequence[bytes], key: bytes) -> tuple[int, ...]:
    """The numbers of the stretches that may be others if a name comes or goes which begins a segment."""
    at = bisect_right(firsts, key) - 1
    # If the first name is gone, its segment joins the one before.
    return (at - 1, at) if at and firsts[at] == key else (at,)


def _joined_neighbours(ranges: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Ranges of keys in order, of which neighbours share one."""
    found: list[tuple[bytes, bytes]] = []
    for low, high in ranges:
        if found and found[-1][1] == low:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def _check_kind(manifest: Manifest, snapshot: CatalogueSnapshot, sizes: tuple[int, int]) -> None:
    """Raise :exc:`NothingToKeep` unless a generation is of the snapshot's catalogue, with segments of these sizes."""
    if snapshot.unversioned and not manifest.static:
        raise NothingToKeep(snapshot.unversioned)
    if manifest.catalogue_id != snapshot.catalogue_id:
        raise NothingToKeep("the published generation is of another catalogue")
    if (manifest.segment_bytes, manifest.largest_segment_bytes) != sizes:
        raise NothingToKeep("the published generation has segments of another size")
    if not manifest.segments:
        raise NothingToKeep("the published generation has no topics")


def _changed(
    manifest: Manifest,
    now: Mapping[str, CatalogVersion],
    anew: Collection[str],
    snapshot: CatalogueSnapshot,
    property_keys: Sequence[str],
) -> tuple[dict[str, list[tuple[str, str]]], list[tuple[bytes, bytes]]]:
    """The names that may have changed, and the key ranges of namespaces to make ``anew`` or not to keep."""
    before = manifest.versions()
    known = before.keys() & now.keys()
    # A namespace without topics is in the questions of no generation of a table, so all that it is asked is new. It has
    # no names to match until some come.
    kept = known - (set(anew) & manifest.namespaces.keys())
    # A restored copy may have the same version number and other topics.
    since = {name: before[name] for name in sorted(kept) if not before[name].same_state(now[name])}
    changes = snapshot.changes(since, property_keys) if since else {}
    found = {name: None if names is None else list(names) for name, names in changes.items()}
    kept -= {name for name, names in found.items() if names is None or (names and name in anew)}
    whole = [
        (first_of_namespace(name), end_of_namespace(name))
        for name in sorted((before.keys() | now.keys()) - kept)
    ]
    return {name: names for name, names in found.items() if names is not None and name in kept}, whole


def _namespaces_with_added_properties(
    before: Iterable[CanonicalQuestion], now: Iterable[CanonicalQuestion]
) -> set[str]:
    """The namespaces that have a selector with properties now which they did not have before."""
    known, wanted = (
        {
            (question.namespace, domain, question.selector)
            for question in questions
            if question.selector.properties
            for domain in question.domains
        }
        for questions in (before, now)
    )
    return {namespace for namespace, _, _ in wanted - known}


def _keys(namespace: str, names: Iterable[tuple[str, str]], target: int) -> Iterator[tuple[bytes, bool]]:
    """The key of each name, and whether it begins a segment."""
    by_domain: dict[str, list[str]] = {}
    for domain, local in names:
        by_domain.setdefault(domain, []).append(local)
    for domain, locals_ in by_domain.items():
        column = pa.array(locals_, pa.large_string())
        begins = begins_segment(namespace, domain, column, target=target).tolist()
        yield from zip(order_key(namespace, domain, column).to_pylist(), begins, strict=True)


def first_key(segment: SegmentEntry) -> bytes:
    """The key of a segment's first name."""
    namespace, domain, _ = segment.runs[0]
    key: bytes = order_key(namespace, domain, pa.array([segment.first_local], pa.large_string()))[0].as_py()
    return key


def _overlaps(namespace: str, key_ranges: Sequence[tuple[bytes, bytes]]) -> bool:
    low, high = first_of_namespace(namespace), end_of_namespace(namespace)
    return any((not stop or low < stop) and start < high for start, stop in key_ranges)
