"""Names with the details of their topics, a block at a time: of a page, or of a whole answer in the order of pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.listing.details import TOPIC, Details
from broker_core.listing.listing import Selection
from broker_core.listing.pages.page_order import topic_ends
from broker_core.listing.pages.page_walk import PageStart, PageWalk
from broker_core.listing.rendered.block_size import BLOCK, BlockSize
from broker_core.listing.rendered.detail_values import all_pairs_bytes, pairs_bytes
from broker_core.listing.rendered.name_blocks import RenderedNames
from broker_core.names import column_data, split_partitions

__all__ = ["DetailBlock", "detail_blocks", "detail_size"]

_Array = np.ndarray[Any, Any]

#: Names that are read together of a whole answer.
_NAMES: Final = 8 * 1024
#: Bytes of a name's object besides the name and the properties, about.
_EACH: Final = 100


@dataclass(frozen=True, slots=True)
class DetailBlock:
    """Full names in the order of pages, with their topics' details: ``rows`` (int64) has each name's row in them."""

    names: pa.LargeStringArray
    details: pa.RecordBatch
    rows: _Array


def detail_blocks(names: RenderedNames, details: Details, size: BlockSize) -> Iterator[DetailBlock]:
    """All names, in blocks of about ``size`` when rendered; each partition has its topic's details.

    ``names`` are a page, in the order of pages, or a selection in any order. ``details`` have exactly the topics of the
    names in the order of pages, as answers do; :exc:`ValueError` otherwise.
    """
    used = 0
    for some, topics in _in_page_order(names):
        ends = topic_ends(topics)
        distinct = topics.take(pa.array(ends))
        if used and distinct[0].equals(details.topics[used - 1]):  # its other names were in the block before
            used -= 1
        if not details.topics.slice(used, len(distinct)).equals(distinct):
            raise ValueError("the details of an answer are not those of its topics")
        rows = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
        used += len(ends)
        part = details.batch.slice(used - len(ends), len(ends))
        yield from _cut(some, rows, part, size)
    if used != len(details):
        raise ValueError("an answer has details of topics that it does not have")


def _in_page_order(names: RenderedNames) -> Iterator[tuple[pa.LargeStringArray, pa.LargeStringArray]]:
    """Names, at least one at a time, and the topic of each."""
    if not isinstance(names, Selection):
        if len(names):
            yield names, split_partitions(names)[0]
        return
    walk = PageWalk(names)
    place: PageStart | None = PageStart()
    while place is not None:
        found, place = walk.block(place, _NAMES).read()
        if len(found):
            yield found.names, found.topics


def _cut(
    names: pa.LargeStringArray, rows: _Array, details: pa.RecordBatch, size: BlockSize
) -> Iterator[DetailBlock]:
    sizes = np.full(len(details), _EACH)
    for column in _maps(details):
        sizes += pairs_bytes(column)
    ends = np.cumsum(np.diff(column_data(names)[1]) + sizes[rows])
    low = before = 0
    while low < len(names):
        high = max(low + 1, int(np.searchsorted(ends, before + size.bytes, side="right")))
        first, last = rows.item(low), rows.item(high - 1) + 1
        yield DetailBlock(names[low:high], details.slice(first, last - first), rows[low:high] - first)
        low, before = high, ends.item(high - 1)


def detail_size(names: RenderedNames, details: Details) -> int:
    """About how many bytes all names with details have when rendered; at least a block if it cannot be estimated."""
    count = len(names)
    of_names = names.fields_size if isinstance(names, Selection) else int(names.nbytes)
    pairs = sum(all_pairs_bytes(column) for column in _maps(details.batch))
    if pairs and count > len(details):  # any of the topics may be the one with many partitions
        return max(BLOCK, of_names + _EACH * count + pairs * count // len(details))
    return of_names + _EACH * count + pairs


def _maps(details: pa.RecordBatch) -> Iterator[pa.MapArray]:
    for name, column in zip(details.schema.names, details.columns, strict=True):
        if name != TOPIC and pa.types.is_map(column.type):
            yield column
