"""The names of the partitioned topics of a listing, each once, as items of JSON."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.rendered.block_size import BlockSize
from broker_core.listing.rendered.name_blocks import NameBlock, RenderedNames, name_blocks
from broker_core.listing.rendered.pieces import separated
from broker_core.names import PARTITION_SUFFIX, split_partitions

__all__ = ["partitioned_topics", "partitioned_topics_json_items"]


def partitioned_topics_json_items(
    names: RenderedNames, size: BlockSize | None = None
) -> Iterator[bytes | memoryview]:
    """The topics that have a partition among ``names``, in the pieces of
    :func:`~broker_core.listing.rendered.names.names_json_items`.
    """
    size = size or BlockSize()
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
        told = pa.array([], pa.large_string())
        if numbers is not None:
            told = pc.unique(topics.filter(pa.array(np.asarray(numbers) >= 0)))
            known = pc.is_in(told, pa.array(open_topics, pa.large_string()))
            told = told.filter(pc.invert(known))
        last = column[len(column) - 1].as_py()
        open_topics = [
            topic
            for topic in _topics_around(last)
            if topic in open_topics or pc.index(told, pa.scalar(topic, pa.large_string())).as_py() >= 0
        ]
        if len(told):
            yield told


def _topics_around(name: str) -> Iterator[str]:
    """The names of all topics of which the following names may be partitions."""
    end = name.find(PARTITION_SUFFIX)
    while end >= 0:
        yield name[:end]
        end = name.find(PARTITION_SUFFIX, end + 1)
