"""Names with details: objects of JSON, NDJSON, an Arrow stream; pieces of bytes as in :mod:`.names`.

There is one object for each full name, so for each partition: ``name``, and the requested columns of its topic:
``partitions`` (the topic's number of them, 0 for a topic without), ``topic_id`` (22 characters,
KIP-516) and ``properties`` (an object). ``null`` is "not known". Names are in the order of pages, also in a whole
answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.details import DETAIL_TYPES, Details
from broker_core.listing.rendered.arrow_stream import arrow_stream
from broker_core.listing.rendered.block_size import BlockSize
from broker_core.listing.rendered.detail_blocks import DetailBlock, detail_blocks
from broker_core.listing.rendered.detail_values import JSON_VALUES, between, joined_texts
from broker_core.listing.rendered.name_blocks import NameBlock, RenderedNames
from broker_core.listing.rendered.names import NAME_SCHEMA
from broker_core.listing.rendered.pieces import separated
from broker_core.listing.rendered.topic_id_texts import topic_id_texts

__all__ = ["SHOWN_DETAILS", "detail_arrow", "detail_json_items", "detail_ndjson", "detail_schema"]

#: The columns of details that are shown, and the type that each has in an Arrow stream.
SHOWN_DETAILS: Final[Mapping[str, pa.DataType]] = MappingProxyType(
    {
        "partitions": DETAIL_TYPES["partitions"],
        "topic_id": pa.string(),
        "properties": DETAIL_TYPES["properties"],
    }
)


def detail_json_items(
    names: RenderedNames, details: Details, columns: Sequence[str], size: BlockSize | None = None
) -> Iterator[bytes | memoryview]:
    """The objects with commas between, for the brackets of an array."""
    return _objects(names, details, columns, b",", b"", size or BlockSize())


def detail_ndjson(
    names: RenderedNames, details: Details, columns: Sequence[str], size: BlockSize | None = None
) -> Iterator[bytes | memoryview]:
    """The objects, one a line."""
    return _objects(names, details, columns, b"\n", b"\n", size or BlockSize())


def detail_arrow(
    names: RenderedNames, details: Details, columns: Sequence[str], size: BlockSize | None = None
) -> Iterator[bytes | memoryview]:
    """An Arrow IPC stream of :func:`detail_schema`."""
    schema, size = detail_schema(columns), size or BlockSize()
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
