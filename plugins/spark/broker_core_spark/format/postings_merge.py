"""Joining the postings of a segment from parts: of groups of selectors, or an older file and added selectors.

Words are copied as they are, so the cost is reading and writing them. Equal postings give equal bytes, however they
were divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import segment_layout
from broker_core_spark.format.framed_file import FramedFile
from broker_core_spark.format.picked_words import word_counts
from broker_core_spark.format.postings_file import PostingsWriter, RunPostings, StoredPostings
from broker_core_spark.format.selector_keys import NO_SELECTORS, SelectorKeys, key_order, split_keys

__all__ = ["joined_postings", "merge_postings"]


def merge_postings(
    runs: Sequence[tuple[str, str, int]],
    parts: Iterable[StoredPostings],
    selectors: Mapping[tuple[str, str], SelectorKeys],
) -> FramedFile:
    """The postings file of a segment with ``runs`` (namespace, domain, names), as the manifest has them.

    ``parts`` are of any of these runs. Entries whose keys are not in ``selectors``, which has the keys of all
    selectors by (namespace, domain), are left out. Raises :exc:`ValueError` if parts do not fit the runs or each other.
    """
    writer = PostingsWriter()
    by_place: dict[tuple[str, str], list[StoredPostings]] = {}
    for postings in parts:
        by_place.setdefault((postings.namespace, postings.domain), []).append(postings)
    for namespace, domain, names in runs:
        found = by_place.pop((namespace, domain), [])
        if any(postings.names != names for postings in found):
            raise ValueError(f"postings of {namespace} are of another number of names")
        own = selectors.get((namespace, domain), NO_SELECTORS)
        writer.add_run(namespace, domain, _merged(names, found, own), own)
    if by_place:
        raise ValueError(f"postings of {next(iter(by_place))}, which is none of the segment's runs")
    return writer.finish()


def joined_postings(parts: Sequence[StoredPostings]) -> StoredPostings:
    """The postings of one run, of parts of it, with all selectors that they have. Raises :exc:`ValueError`."""
    first = parts[0]
    made = _merged(first.names, parts, None)
    return StoredPostings(
        first.namespace, first.domain, first.selectors_digest, first.names, made.entries, made.joined_words
    )


def _merged(names: int, found: Sequence[StoredPostings], selectors: SelectorKeys | None) -> RunPostings:
    if not found:
        return RunPostings(names, np.zeros(0, segment_layout.ENTRY), [])
    entries = np.concatenate([postings.entries for postings in found])
    source = np.repeat(np.arange(len(found)), [len(postings.entries) for postings in found])
    if selectors is not None:
        keys = split_keys(entries["key"])
        stays = np.fromiter((key in selectors.keys for key in keys), bool, len(keys))
        entries, source = entries[stays], source[stays]
    order, begins = key_order(entries["key"])
    entries, source = entries[order], source[order]
    if len(begins) < len(entries):
        raise ValueError("two parts have postings of the same selector")
    counts = word_counts(entries, names)
    has_words = entries["kind"] != segment_layout.KIND_RANGE
    old = entries["first"].astype(np.int64)
    entries["first"][has_words] = (np.cumsum(counts) - counts)[has_words]
    words: list[Array] = []
    # Neighbours of one part are copied together.
    at = np.flatnonzero(has_words)
    if len(at):
        breaks = np.ones(len(at), bool)
        breaks[1:] = (source[at[1:]] != source[at[:-1]]) | (old[at[1:]] != old[at[:-1]] + counts[at[:-1]])
        starts = np.flatnonzero(breaks)
        stops = np.append(starts[1:], len(at)) - 1
        for first, last in zip(at[starts].tolist(), at[stops].tolist(), strict=True):
            part = found[int(source[first])].words[int(old[first]) : int(old[last] + counts[last])]
            if len(part) != int(counts[first : last + 1].sum()):
                raise ValueError("a part has fewer words than its entries need")
            words.append(part)
    return RunPostings(names, entries, words)
