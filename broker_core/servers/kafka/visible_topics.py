"""The topics of a namespace that one caller may see: a table that is shared, and a mask for each of its chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core.listing.topic_table import RenderedChunk, TopicTable
from broker_core.wire.kafka import Encoded
from broker_core.wire.kafka.topic_fragments import Family, with_operations

__all__ = ["VisibleTopics"]

_Array = np.ndarray[Any, Any]
Operations: TypeAlias = "Sequence[_Array | None] | None"


@dataclass(frozen=True, slots=True)
class VisibleTopics:
    """``masks`` has one for each chunk: whether each of its topics is visible, ``None`` where all are.

    ``is_kept``: the table is kept for others, and what is encoded of it too.
    """

    table: TopicTable
    masks: Sequence[_Array | None]
    is_kept: bool = True

    @property
    def count(self) -> int:
        return sum(
            len(chunk) if mask is None else int(mask.sum())
            for chunk, mask in zip(self.table.chunks, self.masks, strict=True)
        )

    def rendered(self, family: Family) -> list[RenderedChunk]:
        """Every chunk, encoded; what is made is left with the chunks."""
        return [family.of(chunk) for chunk in self.table.chunks]

    def is_rendered(self, family: Family) -> bool:
        """Whether :meth:`rendered` has nothing to encode."""
        return all(chunk.known(family.key) is not None for chunk in self.table.chunks)

    def copied_bytes(self, rendered: Sequence[RenderedChunk], operations: Operations = None) -> int:
        """Bytes that :meth:`fragments` copies."""
        return sum(
            len(chunk.data)
            for number, chunk in enumerate(rendered)
            if self.masks[number] is not None or (operations is not None and operations[number] is not None)
        )

    def fragments(
        self, family: Family, rendered: Sequence[RenderedChunk], operations: Operations = None
    ) -> Encoded:
        """All of them as the elements of an array, of the chunks of :meth:`rendered`.

        ``operations`` are the bits of what the caller may do with each topic, by chunk; ``None``: those of the family.
        """
        pieces = []
        for number, (chunk, mask) in enumerate(zip(rendered, self.masks, strict=True)):
            bits = None if operations is None else operations[number]
            pieces.append((chunk if bits is None else with_operations(chunk, family, bits)).joined(mask))
        return Encoded(self.count, pieces)

    def without_names(self, names: Iterable[str]) -> VisibleTopics:
        """The same without a few topics, by name."""
        masks: list[Any] = list(self.masks)
        for name in names:
            number, row = self.table.from_name(name.encode())
            if number < len(masks) and self.table.chunks[number].name(row) == name.encode():
                mask = masks[number]
                masks[number] = (
                    np.ones(len(self.table.chunks[number]), np.bool_) if mask is None else mask.copy()
                )
                masks[number][row] = False
        return VisibleTopics(self.table, masks, self.is_kept)

    def without(self, hidden: Sequence[_Array]) -> VisibleTopics:
        """The same without the topics that are marked, by chunk."""
        masks = [
            (~marks if mask is None else mask & ~marks) if marks.any() else mask
            for marks, mask in zip(hidden, self.masks, strict=True)
        ]
        return VisibleTopics(self.table, masks, self.is_kept)


def names_of(table: TopicTable) -> pa.LargeBinaryArray:
    """All names, in one column."""
    columns = [chunk.names for chunk in table.chunks]
    return pa.concat_arrays(columns) if columns else pa.array([], pa.large_binary())
