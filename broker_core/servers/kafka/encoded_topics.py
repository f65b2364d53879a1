"""Topics that a Kafka client may see, encoded: a chunk at a time, of pieces that clients share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from broker_core.listing.topic_table import RenderedChunk
from broker_core.service import VisibleTopics
from broker_core.wire.kafka import Encoded
from broker_core.wire.kafka.topic_fragments import Family, with_operations

__all__ = ["copied_bytes", "fragments", "is_rendered", "rendered"]

_Array = np.ndarray[Any, Any]
Operations: TypeAlias = "Sequence[_Array | None] | None"


def rendered(visible: VisibleTopics, family: Family) -> list[RenderedChunk]:
    """Every chunk, encoded; what is made is left with the chunks."""
    return [family.of(chunk) for chunk in visible.table.chunks]


def is_rendered(visible: VisibleTopics, family: Family) -> bool:
    """Whether :func:`rendered` has nothing to encode."""
    return all(chunk.known(family.key) is not None for chunk in visible.table.chunks)


def copied_bytes(
    visible: VisibleTopics, chunks: Sequence[RenderedChunk], operations: Operations = None
) -> int:
    """Bytes that :func:`fragments` copies."""
    return sum(
        len(chunk.data)
        for number, chunk in enumerate(chunks)
        if visible.masks[number] is not None or (operations is not None and operations[number] is not None)
    )


def fragments(
    visible: VisibleTopics, family: Family, chunks: Sequence[RenderedChunk], operations: Operations = None
) -> Encoded:
    """All of them as the elements of an array, of the chunks of :func:`rendered`.

    ``operations`` are the bits of what the caller may do with each topic, by chunk; ``None``: those of the family.
    """
    pieces = []
    for number, (chunk, mask) in enumerate(zip(chunks, visible.masks, strict=True)):
        bits = None if operations is None else operations[number]
        pieces.append((chunk if bits is None else with_operations(chunk, family, bits)).joined(mask))
    return Encoded(visible.count, pieces)
