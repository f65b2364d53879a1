"""Chunks of tables of topics, for tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from broker_core.listing.topic_table import TopicChunk

__all__ = ["chunk_of"]


def chunk_of(partitions: Mapping[str, int], *, ids: bool = True) -> TopicChunk:
    """Topics with so many partitions each, by their names in order; ids are made of the names."""
    names = [name.encode() for name in partitions]
    return TopicChunk(
        pa.array(names, pa.large_binary()),
        np.array(list(partitions.values()), np.int32),
        pa.array([name[-16:].ljust(16, b"-") for name in names], pa.large_binary()) if ids else None,
    )
