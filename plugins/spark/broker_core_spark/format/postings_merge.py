"""Joining the postings of a segment from parts: those that stay, those that changed, and those of added selectors.

Words are copied as they are, so the cost is reading and writing them. Equal postings give equal bytes, however they
were divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import segment_layout
from broker_core_spark.format.framed_file import FramedFile
from broker_core_spark.format.picked_words import word_counts
from broker_core_spark.format.postings_file import PostingsWriter, RunPostings, StoredPostings
from broker_core_spark.format.selector_keys import NOTHING_ASKED, SelectorKeys, key_order, split_keys

__all__ = ["joined_postings", "merge_postings"]


def merge_postings(
    runs: Iterable[Sequence[StoredPostings]], asked: Mapping[tuple[str, str], SelectorKeys]
) -> FramedFile:
    """The postings file of a segment, of the parts of each of its runs, at least one, in order.

    Entries whose keys are not in ``asked``, which has the keys of all selectors by (namespace, domain), are left out.
    Raises :exc:`ValueError` if the parts of a run do not fit each other.
    """
    writer = PostingsWriter()
    for parts in runs:
        place = parts[0].namespace, parts[0].domain
        keys = asked.get(place, NOTHING_ASKED)
        writer.add_run(*place, _merged(parts, keys), keys)
    return writer.finish()


def joined_postings(parts: Sequence[StoredPostings]) -> StoredPostings:
    """The postings of one run, of parts of it, with all selectors that they have. Raises :exc:`ValueError`."""
    made = _merged(parts, None)
    words = np.concatenate([np.empty(0, "<u4"), *made.words])
    return replace(parts[0], entries=made.entries, words=words)


def _merged(found: Sequence[StoredPostings], asked: SelectorKeys | None) -> RunPostings:
    names = found[0].names
    if any(
        (one.namespace, one.domain, one.names) != (found[0].namespace, found[0].domain, names)
        for one in found
    ):
        raise ValueError("the parts are of different runs")
    entries = np.concatenate([postings.entries for postings in found])
    source = np.repeat(np.arange(len(found)), [len(postings.entries) for postings in found])
    if asked is not None:
        keys = split_keys(entries["key"])
        stays = np.fromiter((key in asked.keys for key in keys), bool, len(keys))
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
