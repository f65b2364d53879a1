"""Writing the questions file and the manifest: the last step of a build before publishing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import (
    LARGEST_FACTOR,
    SEGMENT_BYTES,
    CanonicalQuestion,
    FileEntry,
    Manifest,
    SegmentEntry,
    manifest_name,
    question_lines,
)
from broker_core_spark.store import Store, put_all_verified

__all__ = ["write_manifest"]


def write_manifest(
    store: Store,
    *,
    catalogue_id: str,
    versions: Mapping[str, int | None],
    segments: Iterable[SegmentEntry],
    questions: Sequence[CanonicalQuestion],
    property_keys: Iterable[str] = (),
    static: bool = False,
    segment_bytes: int = SEGMENT_BYTES,
    stamps: Mapping[str, str] | None = None,
    largest_segment_bytes: int | None = None,
) -> Manifest:
    """Write the questions file and the manifest of segments that are in the store.

    ``versions`` has every namespace that was read, with ``None`` for each in a ``static`` catalogue. ``segments`` may
    have any order. The largest segment has twice ``segment_bytes``, if ``largest_segment_bytes`` does not say more.
    Damaged files of the same names are replaced. :mod:`broker_core_spark.store.publishing` publishes.
    Raises :exc:`ValueError` for parts that do not fit, such as a question of an unknown namespace.
    """
    for question in questions:
        if question.namespace not in versions:
            raise ValueError(f"a question about {question.namespace}, which the catalogue does not have")
        unknown = {key for key, _ in question.selector.properties}.difference(property_keys)
        if unknown:
            raise ValueError(f"a question selects by {sorted(unknown)}, which are none of the property keys")
    data, count = question_lines(questions)
    entry = FileEntry(f"questions/{hashlib.sha256(data).hexdigest()}.jsonl", len(data))
    manifest = Manifest(
        catalogue_id,
        static,
        tuple(sorted(set(property_keys))),
        segment_bytes,
        dict(versions),
        count,
        entry,
        tuple(sorted(segments, key=lambda segment: segment.order)),
        dict(stamps or {}),
        largest_segment_bytes or LARGEST_FACTOR * segment_bytes,
    )
    try:
        Manifest.parse(manifest.data, manifest_name(manifest.id))
    except InvalidGeneration as error:
        raise ValueError(f"this is no generation: {error.reason}") from None
    put_all_verified(store, [(entry, data), (manifest.entry, manifest.data)])
    return manifest
