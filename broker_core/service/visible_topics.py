"""The topics of a namespace that one asker may see: a table that is shared, and a mask for each of its chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core.listing import TopicChunk, TopicTable

__all__ = ["Allowed", "VisibleTopics", "names_of"]

_Array = np.ndarray[Any, Any]
#: Whether ACLs allow each topic of a chunk; ``None``: all.
Allowed: TypeAlias = Callable[[TopicChunk], _Array | None]


@dataclass(frozen=True, slots=True)
class VisibleTopics:
    """``masks`` has one for each chunk: whether each of its topics is visible, ``None`` if all are.

    ``is_kept``: the table is kept for others, and so are encoded parts of it.
    """

    table: TopicTable
    masks: Sequence[_Array | None]
    is_kept: bool = True

    @property
    def count(self) -> int:
        """The number of visible topics."""
        return sum(
            len(chunk) if mask is None else int(mask.sum())
            for chunk, mask in zip(self.table.chunks, self.masks, strict=True)
        )

    def without_names(self, names: Iterable[str]) -> VisibleTopics:
        """The topics without a few, by name."""
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

    def among(self, masks: Sequence[_Array | None]) -> VisibleTopics:
        """The topics that these masks, one for each chunk, have as well."""
        both = [_both(mine, mask) for mine, mask in zip(self.masks, masks, strict=True)]
        return VisibleTopics(self.table, both, self.is_kept)

    def allowed(self, allowed: Allowed) -> VisibleTopics:
        """The topics that are allowed."""
        return self.among([allowed(chunk) for chunk in self.table.chunks])


def names_of(table: TopicTable) -> pa.LargeBinaryArray:
    """All names, in one column."""
    columns = [chunk.names for chunk in table.chunks]
    return pa.concat_arrays(columns) if columns else pa.array([], pa.large_binary())


def _both(first: _Array | None, second: _Array | None) -> _Array | None:
    if first is None or second is None:
        return second if first is None else first
    both: _Array = first & second
    return both
