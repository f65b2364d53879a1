"""The topics of a namespace that one caller may see: a table that is shared, and a mask for each of its chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.listing.topic_table import TopicRow, TopicTable
from broker_core.wire.kafka import Encoded
from broker_core.wire.kafka.topic_fragments import Family, with_operations

__all__ = ["VisibleTopics"]

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class VisibleTopics:
    """``masks`` has one for each chunk: whether each of its topics is visible, ``None`` where all are."""

    table: TopicTable
    masks: Sequence[_Array | None]

    @property
    def count(self) -> int:
        return sum(
            len(chunk) if mask is None else int(mask.sum())
            for chunk, mask in zip(self.table.chunks, self.masks, strict=True)
        )

    def fragments(self, family: Family, operations: Sequence[_Array | None] | None = None) -> Encoded:
        """All of them as the elements of an array; what is encoded is kept with the table.

        ``operations`` are the bits of what the caller may do with each topic, by chunk; ``None``: those of the family.
        """
        pieces = []
        for number, (chunk, mask) in enumerate(zip(self.table.chunks, self.masks, strict=True)):
            rendered = family.of(chunk)
            bits = None if operations is None else operations[number]
            if bits is not None:
                rendered = with_operations(rendered, family, bits)
            pieces.append(rendered.joined(mask))
        return Encoded(self.count, pieces)

    def is_rendered(self, family: Family) -> bool:
        """Whether :meth:`fragments` has nothing to encode."""
        return all(chunk.known(family.key) is not None for chunk in self.table.chunks)

    def row(self, name: str) -> TopicRow | None:
        """The topic of this name, where it is visible."""
        number, row = self.table.from_name(name.encode())
        if number == len(self.table.chunks):
            return None
        mask = self.masks[number]
        if mask is not None and not mask[row]:
            return None
        found = self.table.chunks[number].row(row)
        return found if found.name == name.encode() else None

    def without(self, hidden: Sequence[_Array]) -> VisibleTopics:
        """The same without the topics that are marked, by chunk."""
        masks = [
            (~marks if mask is None else mask & ~marks) if marks.any() else mask
            for marks, mask in zip(hidden, self.masks, strict=True)
        ]
        return VisibleTopics(self.table, masks)


def names_of(table: TopicTable) -> pa.LargeBinaryArray:
    """All names, in one column."""
    columns = [chunk.names for chunk in table.chunks]
    return pa.concat_arrays(columns) if columns else pa.array([], pa.large_binary())
