"""Names alone: one a line, as items of JSON, as NDJSON, as an Arrow stream.

Each function gives the pieces of what it renders, made by one call of ``next()`` each, about ``size`` at most (by
default half a mebibyte; up to six times that if most characters of the names are control characters, which take six
bytes in JSON). They are made by Arrow's kernels, which run without the interpreter's lock, so the calls are for worker
threads. Nothing is kept.

A topic's name may have every character but ``/`` and NUL (:func:`~broker_core.names.topic_name.check_local_name`), so
also a line feed. As a line of text such a name would be read as two, and is refused: JSON, NDJSON and Arrow can show
it. Lines of text end with a line feed alone; every other character is a part of a name, U+2028 and carriage returns
too.

The names of partitioned topics, each once, are items of JSON too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.rendered.name_blocks import NameBlock, RenderedNames, has_line_feed, name_blocks
from broker_core.listing.rendered.pieces import USUAL_SIZE, BlockSize, arrow_stream, separated
from broker_core.names import PARTITION_SUFFIX, split_partitions

__all__ = [
    "NAME_SCHEMA",
    "LineFeedInName",
    "names_arrow",
    "names_json_items",
    "names_ndjson",
    "names_text",
    "partitioned_topics",
    "partitioned_topics_json_items",
]


#: ``utf8``, which more readers support than ``large_utf8``; a batch is far smaller than 2 GiB.
NAME_SCHEMA: Final = pa.schema([pa.field("name", pa.string(), nullable=False)])


class LineFeedInName(ValueError):
    """A name has a line feed, so that the names cannot be lines of text."""


def names_text(names: RenderedNames, size: BlockSize = USUAL_SIZE) -> Iterator[bytes | memoryview]:
    """One full name a line. The first ``next()`` raises :exc:`LineFeedInName` if a name has a line feed."""
    if has_line_feed(names):
        raise LineFeedInName("a topic's name has a line feed, so that names cannot be lines of text")
    yield from separated((block.with_separator(b"\n") for block in name_blocks(names, size)), 1, b"\n", size)


def names_json_items(names: RenderedNames, size: BlockSize = USUAL_SIZE) -> Iterator[bytes | memoryview]:
    """Full names as JSON strings with commas between, for the brackets of an array."""
    return separated((block.separated_in_json(b'","') for block in name_blocks(names, size)), 2, b'"', size)


def names_ndjson(names: RenderedNames, size: BlockSize = USUAL_SIZE) -> Iterator[bytes | memoryview]:
    """One full name a line, as a JSON string."""
    return separated(
        (block.separated_in_json(b'"\n"') for block in name_blocks(names, size)), 2, b'"\n', size
    )


def names_arrow(names: RenderedNames, size: BlockSize = USUAL_SIZE) -> Iterator[bytes | memoryview]:
    """An Arrow IPC stream with one column ``name`` (``utf8``)."""
    columns = (
        block.with_separator(b"").cast(pa.large_string()).cast(pa.string())
        for block in name_blocks(names, size)
    )
    return arrow_stream(
        NAME_SCHEMA, (pa.record_batch([column], schema=NAME_SCHEMA) for column in columns), size
    )


def partitioned_topics_json_items(
    names: RenderedNames, size: BlockSize = USUAL_SIZE
) -> Iterator[bytes | memoryview]:
    """The topics that have a partition among ``names``, in the pieces of
    :func:`~broker_core.listing.rendered.names.names_json_items`.
    """
    blocks = (NameBlock(topics.cast(pa.large_binary()), 0) for topics in partitioned_topics(names, size))
    return separated((block.separated_in_json(b'","') for block in blocks), 2, b'"', size)


def partitioned_topics(names: RenderedNames, size: BlockSize) -> Iterator[pa.LargeStringArray]:
    """The topics that have a partition among ``names``, as columns of which none is empty. ``names`` are in the order
    of the hash.

    Little is remembered from block to block: in that order, all names that begin with ``x-partition-`` are together.
    """
    open_topics: list[str] = []  # rendered already, and the next names may be their partitions
    for block in name_blocks(names, size):
        column = block.with_separator(b"").cast(pa.large_string())
        topics, numbers = split_partitions(column)
        partitioned = pa.array([], pa.large_string())
        if numbers is not None:
            partitioned = pc.unique(topics.filter(pa.array(np.asarray(numbers) >= 0)))
            known = pc.is_in(partitioned, pa.array(open_topics, pa.large_string()))
            partitioned = partitioned.filter(pc.invert(known))
        last = column[len(column) - 1].as_py()
        open_topics = [
            topic
            for topic in _topics_around(last)
            if topic in open_topics or pc.index(partitioned, pa.scalar(topic, pa.large_string())).as_py() >= 0
        ]
        if len(partitioned):
            yield partitioned


def _topics_around(name: str) -> Iterator[str]:
    """The names of all topics of which the following names may be partitions."""
    end = name.find(PARTITION_SUFFIX)
    while end >= 0:
        yield name[:end]
        end = name.find(PARTITION_SUFFIX, end + 1)
