"""Choosing the segments to keep of the last generation, and the ranges of keys to make anew.

The names of a segment are kept if none of them came, went or changed its properties, and its end did not move. They
would come out byte for byte the same. The changes of the catalogue say so. Other questions change the postings alone
(:mod:`.reread_segments`). A namespace is made anew where its changes are not known, and where a question with
properties was added, because segments do not have these. Where no changes are known, nothing is kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from broker_core import EncodedNames
from broker_core.change_log import CatalogVersion
from broker_core_spark.batch.errors import NothingToKeep
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot
from broker_core_spark.batch.staging.order_keys import end_of_namespace, first_of_namespace, order_key
from broker_core_spark.errors import InvalidGeneration, StoreFailed
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import CanonicalQuestion, NameSelector
from broker_core_spark.format.manifest import Manifest, SegmentEntry
from broker_core_spark.format.questions_file import read_questions
from broker_core_spark.format.segment_boundaries import LARGEST_FACTOR, SEGMENT_BYTES
from broker_core_spark.format.segment_checks import check_first_names
from broker_core_spark.store import Store
from broker_core_spark.store.read_manifest import read_manifest
from broker_core_spark.store.verified_files import fetch_verified

__all__ = [
    "PreviousGeneration",
    "SegmentReuse",
    "first_key",
    "read_previous_generation",
    "reusable_segments",
]


@dataclass(frozen=True, slots=True)
class PreviousGeneration:
    """The published generation and its questions."""

    manifest: Manifest
    questions: tuple[CanonicalQuestion, ...]


@dataclass(frozen=True, slots=True)
class SegmentReuse:
    """The segments to keep; the ranges of keys to make anew, in order; the namespaces in these ranges.

    ``unread`` are the namespaces of the last generation that are in none of the ranges.
    """

    kept: tuple[SegmentEntry, ...]
    key_ranges: tuple[tuple[bytes, bytes], ...]
    namespaces: tuple[str, ...]
    unread: frozenset[str] = frozenset()


def read_previous_generation(store: Store, generation: str) -> PreviousGeneration:
    """The generation of an id, with its questions.

    Only the first name of each segment is read. It must be the manifest's and begin a segment, because names are
    assigned to segments by it. An unreadable segment is left to the caller. Raises :exc:`InvalidGeneration` and
    :exc:`DamagedFile` for a damaged generation, and :exc:`NoSuchGeneration`.
    """
    manifest = read_manifest(store, generation)
    lines = fetch_verified(store, manifest.questions, None)
    questions = tuple(question for question, _, _ in read_questions(lines, manifest))
    check_first_names(manifest)
    for entry in manifest.segments:
        try:
            begins = _begins_with(store, entry)
        except StoreFailed:
            continue
        if not begins:
            raise InvalidGeneration(entry.name, "its first name is not the one that the manifest has")
    return PreviousGeneration(manifest, questions)


def _begins_with(store: Store, entry: SegmentEntry) -> bool:
    """Whether the first name in a segment's file is the manifest's."""
    namespace, domain, names = entry.runs[0]
    expected: bytes = EncodedNames.of(namespace, domain, [entry.first_local]).fields[0].as_py()
    place = segment_layout.NamesLayout(segment_layout.HEADER.size, names, len(expected))
    if place.end > entry.size:
        return False
    offsets = store.get_range(entry.name, place.start, place.start + 8)
    found = store.get_range(entry.name, place.fields_at, place.fields_at + len(expected))
    return offsets == bytes(4) + len(expected).to_bytes(4, "little") and found == expected


def reusable_segments(
    previous: PreviousGeneration,
    snapshot: CatalogueSnapshot,
    questions: Sequence[CanonicalQuestion],
    *,
    property_keys: Sequence[str] = (),
    target: int = SEGMENT_BYTES,
    largest: int | None = None,
    damaged: Collection[str] = (),
) -> SegmentReuse:
    """What to keep of ``previous`` for these questions of this snapshot.

    ``damaged`` are names of segments to make anew. Raises :exc:`NothingToKeep`.
    """
    manifest = previous.manifest
    _check_kind(manifest, snapshot, property_keys, (target, largest or LARGEST_FACTOR * target))
    named = {question.namespace for question in questions}
    now = {name: version for name in named if (version := snapshot.version(name)) is not None}
    # A namespace without topics is in the questions of no generation of a table. It has no names to match.
    anew = manifest.namespaces.keys() & _namespaces_with_added_properties(previous.questions, questions)
    keys, whole = _changed(manifest.versions(), now, anew, snapshot, property_keys)
    # The pieces of a stretch depend on all of its names.
    stretches = manifest.stretches()
    firsts = [b"", *(first_key(stretch[0]) for stretch in stretches[1:])]
    rebuilt = {
        at for at, stretch in enumerate(stretches) if any(segment.name in damaged for segment in stretch)
    }
    for key in keys:
        at = bisect_right(firsts, key) - 1
        rebuilt.add(at)
        if at and firsts[at] == key:  # if the first name is gone, its segment joins the one before
            rebuilt.add(at - 1)
    for low, high in whole:
        rebuilt.update(range(bisect_right(firsts, low) - 1, max(bisect_left(firsts, high), 1)))
    key_ranges: list[tuple[bytes, bytes]] = []
    for at in sorted(rebuilt):
        stop = firsts[at + 1] if at + 1 < len(firsts) else b""
        if key_ranges and key_ranges[-1][1] == firsts[at]:
            key_ranges[-1] = (key_ranges[-1][0], stop)
        else:
            key_ranges.append((firsts[at], stop))
    inside = tuple(name for name in sorted(now) if _overlaps(name, key_ranges))
    kept = tuple(segment for at, stretch in enumerate(stretches) if at not in rebuilt for segment in stretch)
    unread = frozenset(manifest.namespaces.keys() & now.keys()).difference(inside)
    return SegmentReuse(kept, tuple(key_ranges), inside, unread)


def _check_kind(
    manifest: Manifest, snapshot: CatalogueSnapshot, property_keys: Sequence[str], sizes: tuple[int, int]
) -> None:
    """Raise :exc:`NothingToKeep` for a generation that this snapshot says nothing about."""
    if snapshot.unversioned:
        raise NothingToKeep(snapshot.unversioned)
    if manifest.catalogue_id != snapshot.catalogue_id:
        raise NothingToKeep("the published generation is of another catalogue")
    if manifest.static and not manifest.stamps:
        raise NothingToKeep("the published generation does not say which version of a table it is of")
    # A table may have a name twice, with two values of a key that was not looked at.
    if manifest.static and manifest.property_keys != tuple(property_keys):
        raise NothingToKeep("the published generation has other property keys")
    if (manifest.segment_bytes, manifest.largest_segment_bytes) != sizes:
        raise NothingToKeep("the published generation has segments of another size")
    if not manifest.segments:
        raise NothingToKeep("the published generation has no topics")


def _changed(
    before: Mapping[str, CatalogVersion],
    now: Mapping[str, CatalogVersion],
    anew: Collection[str],
    snapshot: CatalogueSnapshot,
    property_keys: Sequence[str],
) -> tuple[list[bytes], list[tuple[bytes, bytes]]]:
    """The keys of names that may have changed, and the key ranges of namespaces to make ``anew`` or not to keep."""
    kept = (before.keys() & now.keys()) - set(anew)
    # A restored copy may have the same version number and other topics.
    since = {name: before[name] for name in sorted(kept) if not before[name].same_state(now[name])}
    found = snapshot.changes(since, property_keys) if since else {}
    keys: list[bytes] = []
    for namespace, names in found.items():
        if names is None:
            kept.remove(namespace)
        else:
            keys += _keys(namespace, names)
    whole = [
        (first_of_namespace(name), end_of_namespace(name))
        for name in sorted((before.keys() | now.keys()) - kept)
    ]
    return keys, whole


def _namespaces_with_added_properties(
    before: Iterable[CanonicalQuestion], now: Iterable[CanonicalQuestion]
) -> set[str]:
    """The namespaces that have a selector with properties now which they did not have before."""
    known = _with_properties(before)
    return {namespace for namespace, _, _ in _with_properties(now) - known}


def _with_properties(questions: Iterable[CanonicalQuestion]) -> set[tuple[str, str, NameSelector]]:
    return {
        (question.namespace, domain, question.selector)
        for question in questions
        if question.selector.properties
        for domain in question.domains
    }


def _keys(namespace: str, names: Iterable[tuple[str, str]]) -> list[bytes]:
    by_domain: dict[str, list[str]] = {}
    for domain, local in names:
        by_domain.setdefault(domain, []).append(local)
    keys: list[bytes] = []
    for domain, locals_ in by_domain.items():
        keys += order_key(namespace, domain, pa.array(locals_, pa.large_string())).to_pylist()
    return keys


def first_key(segment: SegmentEntry) -> bytes:
    """The key of a segment's first name."""
    namespace, domain, _ = segment.runs[0]
    key: bytes = order_key(namespace, domain, pa.array([segment.first_local], pa.large_string()))[0].as_py()
    return key


def _overlaps(namespace: str, key_ranges: Sequence[tuple[bytes, bytes]]) -> bool:
    low, high = first_of_namespace(namespace), end_of_namespace(namespace)
    return any((not stop or low < stop) and start < high for start, stop in key_ranges)
