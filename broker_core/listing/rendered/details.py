"""Names with details: objects of JSON, NDJSON, an Arrow stream; pieces of bytes as in :mod:`.names`.

There is one object for each full name, so for each partition: ``name``, and the requested columns of its topic:
``partitions`` (the topic's number of them, 0 for a topic without), ``topic_id`` (22 characters,
KIP-516) and ``properties`` (an object). ``null`` is "not known". Names are in the order of pages, also in a whole
answer.

They are rendered a block at a time, of a page, or of a whole answer in the order of pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.details import DETAIL_TYPES, TOPIC, Details
from broker_core.listing.listing import Selection
from broker_core.listing.pages.page_walk import PageStart, PageWalk, topic_ends
from broker_core.listing.rendered.detail_values import (
    JSON_VALUES,
    all_pairs_bytes,
    between,
    joined_texts,
    pairs_bytes,
    topic_id_texts,
)
from broker_core.listing.rendered.name_blocks import NameBlock, RenderedNames
from broker_core.listing.rendered.names import NAME_SCHEMA
from broker_core.listing.rendered.pieces import BLOCK, USUAL_SIZE, BlockSize, arrow_stream, separated
from broker_core.names import Array, column_data, split_partitions

__all__ = [
    "SHOWN_DETAILS",
    "DetailBlock",
    "detail_arrow",
    "detail_blocks",
    "detail_json_items",
    "detail_ndjson",
    "detail_schema",
    "detail_size",
]


#: Names that are read together of a whole answer.
_NAMES: Final = 8 * 1024
#: Bytes of a name's object besides the name and the properties, about.
_EACH: Final = 100


@dataclass(frozen=True, slots=True)
class DetailBlock:
    """Full names in the order of pages, with their topics' details: ``rows`` (int64) has each name's row in them."""

    names: pa.LargeStringArray
    details: pa.RecordBatch
    rows: Array


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
    names: pa.LargeStringArray, rows: Array, details: pa.RecordBatch, size: BlockSize
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


#: The columns of details that are shown, and the type that each has in an Arrow stream.
SHOWN_DETAILS: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "partitions": DETAIL_TYPES["partitions"],
        "topic_id": pa.string(),
        "properties": DETAIL_TYPES["properties"],
    }
)


def detail_json_items(
    names: RenderedNames, details: Details, columns: Sequence[str], size: BlockSize = USUAL_SIZE
) -> Iterator[bytes | memoryview]:
    """The objects with commas between, for the brackets of an array."""
    return _objects(names, details, columns, b",", b"", size)


def detail_ndjson(
    names: RenderedNames, details: Details, columns: Sequence[str], size: BlockSize = USUAL_SIZE
) -> Iterator[bytes | memoryview]:
    """The objects, one a line."""
    return _objects(names, details, columns, b"\n", b"\n", size)


def detail_arrow(
    names: RenderedNames, details: Details, columns: Sequence[str], size: BlockSize = USUAL_SIZE
) -> Iterator[bytes | memoryview]:
    """An Arrow IPC stream of :func:`detail_schema`."""
    schema = detail_schema(columns)
    batches = (_batch(block, columns, schema) for block in detail_blocks(names, details, size))
    return arrow_stream(schema, batches, size)


def detail_schema(columns: Sequence[str]) -> pa.Schema:
    """The column ``name``, and the requested ones."""
    return pa.schema([*NAME_SCHEMA, *(pa.field(name, SHOWN_DETAILS[name]) for name in columns)])


def _objects(
    names: RenderedNames,
    details: Details,
    columns: Sequence[str],
    separator: bytes,
    end: bytes,
    size: BlockSize,
) -> Iterator[bytes | memoryview]:
    opening = separator + b'{"name":"'
    blocks = detail_blocks(names, details, size)
    return separated((_block_objects(block, columns, opening) for block in blocks), len(separator), end, size)


def _block_objects(block: DetailBlock, columns: Sequence[str], opening: bytes) -> pa.LargeBinaryArray:
    named = NameBlock(block.names.cast(pa.large_binary()), 0).separated_in_json(opening)
    texts = []
    quote = '"'  # of the name
    for name in columns:
        value = JSON_VALUES[name](block.details.column(name))
        texts.append(between(f'{quote},"{name}":'.encode(), value))
        quote = ""
    if not texts:
        return between(b"", named, b'"}')
    if len(block.rows) != len(block.details):
        texts = [joined_texts(*texts).take(pa.array(block.rows))]
    return between(b"", joined_texts(named, *texts), b"}")


def _batch(block: DetailBlock, columns: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    made: list[Any] = [block.names.cast(pa.string())]
    for name in columns:
        column = block.details.column(name)
        if name == "topic_id":
            texts = topic_id_texts(column).cast(pa.large_string()).cast(pa.string())
            column = pc.if_else(column.is_valid(), texts, None)
        made.append(column if len(block.rows) == len(column) else column.take(pa.array(block.rows)))
    return pa.record_batch(made, schema=schema)
