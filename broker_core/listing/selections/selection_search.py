"""Functions of selections for the core: searches in slices for threads, differences, counts by domain, other tags.

Encoded names under another tag than that of a listing's answer are for messages of watchers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from broker_core.listing.changes.part_difference import bytes_to_compare, part_difference
from broker_core.listing.fields_reader import FieldsReader
from broker_core.listing.listing import Listing, Selection, data_of, part_of, selection_of
from broker_core.listing.search.pattern_scan import PatternScan
from broker_core.names import DOMAINS, column_data, name_of_hash_order
from broker_core.patterns import TopicsPattern

__all__ = [
    "difference_bytes",
    "known_changes",
    "matching_scan",
    "rows_by_domain",
    "selection_difference",
    "tagged_fields",
]


def matching_scan(searched: Selection, pattern: TopicsPattern) -> PatternScan[Selection]:
    """The search whose result is that of :meth:`Selection.matching`."""
    listing = searched.listing
    return PatternScan(data_of(listing), part_of(searched), pattern, partial(selection_of, listing))


def rows_by_domain(selection: Selection) -> dict[str, int]:
    """The number of names of each domain; each chunk has names of one domain."""
    data = data_of(selection.listing)
    counts = dict.fromkeys(DOMAINS, 0)
    for number, rows in part_of(selection).pieces_in(data):
        counts[data.chunks[number].domain] += len(rows)
    return counts


def selection_difference(selection: Selection, older: Selection) -> tuple[Selection, Selection]:
    """The topics that ``older`` does not have, and (of its listing) the topics that are not in ``selection``.

    It costs what changed, as :meth:`Listing.difference` does. Both are of one namespace.
    """
    listing, former = selection.listing, older.listing
    added, gone = part_difference(data_of(listing), part_of(selection), data_of(former), part_of(older))
    return selection_of(listing, added), selection_of(former, gone)


def known_changes(listing: Listing, older: Listing) -> list[str] | None:
    """The full names that only one of two versions of a listing has, if that is known without reading them."""
    changes = data_of(listing).changes_since(data_of(older))
    return None if changes is None else [name_of_hash_order(key) for keys in changes for key in keys]


def difference_bytes(selection: Selection, older: Selection) -> int:
    """About how many bytes :func:`selection_difference` takes."""
    data, former = data_of(selection.listing), data_of(older.listing)
    return bytes_to_compare(data, part_of(selection), former, part_of(older))


#: Rows of a block.
_ROWS: Final = 4096


def tagged_fields(selection: Selection, tag: int) -> FieldsReader:
    """The names as protobuf fields with a tag of one byte; ``selection.fields_size`` bytes in all."""
    return FieldsReader(_blocks(selection, tag), selection.fields_size)


def _blocks(selection: Selection, tag: int) -> Iterator[memoryview]:
    for batch in selection.batches("field", rows=_ROWS):
        data, offsets = column_data(batch.column("field"))
        first = offsets.item(0)
        block = np.frombuffer(data, np.uint8)[first : offsets.item(-1)].copy()
        block[offsets[:-1] - first] = tag
        yield block.data
