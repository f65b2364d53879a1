"""A chunk of a table of topics: columns of some thousand topics, and their cached encodings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from broker_core.names import Array, column_data

__all__ = ["NO_ID", "RenderedChunk", "TopicChunk", "TopicRow"]

#: In place of an id that is not known.
NO_ID: Final = bytes(16)
#: Bytes of a chunk besides its columns.
_OBJECTS: Final = 1024
#: Masks of a chunk that may be kept: 32 for plugins' answers, and 32 for ACLs. Their memory is counted in advance; each
#: has ``_MASK`` bytes besides a bit for each topic.
_MASKS: Final = 64
_MASK: Final = 256


class TopicRow(NamedTuple):
    """One topic; ``partitions`` is the number that clients get: at least one. ``placement`` is as in a chunk."""

    name: bytes
    partitions: int
    topic_id: bytes
    placement: bytes | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class RenderedChunk:
    """The topics of a chunk, encoded: topic ``n`` is ``data[offsets[n]:offsets[n + 1]]``."""

    data: memoryview
    offsets: Array

    @property
    def nbytes(self) -> int:
        return len(self.data) + int(self.offsets.nbytes)

    def joined(self, mask: Array | None) -> memoryview:
        """The topics that a mask shows, one after the other; ``None`` shows all, and copies nothing."""
        if mask is None:
            return self.data
        shown = self.column().filter(pa.array(mask))
        data, offsets = column_data(shown)
        return memoryview(data)[int(offsets[0]) : int(offsets[-1])]

    def rows(self, rows: Array) -> memoryview:
        """Some topics, by their ascending numbers, at least one; consecutive ones are not copied."""
        first, last = int(rows[0]), int(rows[-1])
        if last - first + 1 == len(rows):
            return self.data[int(self.offsets[first]) : int(self.offsets[last + 1])]
        return RenderedChunk.of_column(self.column().take(pa.array(rows))).data

    @classmethod
    def of_column(cls, column: pa.LargeBinaryArray) -> RenderedChunk:
        """A chunk of encoded topics; the column begins where its memory does."""
        data, offsets = column_data(column)
        return cls(memoryview(data)[: int(offsets[-1])], offsets)

    def column(self) -> pa.LargeBinaryArray:
        """The topics as a column, which shares the memory."""
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(),
            len(self.offsets) - 1,
            [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)],
        )


class TopicChunk:
    """Some topics in the order of their names' bytes, each once; immutable.

    ``names`` are their names in the namespace, ``partitions`` (int32) the numbers that clients get, ``ids`` their ids
    of 16 bytes (``None``: no id is known). ``placements`` are the nodes of each topic's partitions, in the form of the
    protocol that they are for; ``None``: all are on this node.
    """

    __slots__ = (
        "__weakref__",
        "_rendered",
        "_renders",
        "_unheld",
        "ids",
        "names",
        "partitions",
        "placements",
    )

    def __init__(
        self,
        names: pa.LargeBinaryArray,
        partitions: Array,
        ids: pa.LargeBinaryArray | None,
        placements: pa.LargeBinaryArray | None = None,
    ) -> None:
        self.names = names
        self.partitions = partitions
        self.ids = ids
        self.placements = placements
        self._rendered: dict[Hashable, RenderedChunk] = {}
        self._renders: dict[Hashable, Callable[[TopicChunk], RenderedChunk]] = {}
        self._unheld: list[tuple[Hashable, RenderedChunk]] = []

    def __len__(self) -> int:
        return len(self.names)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, the objects, the masks, and all cached encodings."""
        columns = (self.names, self.ids, self.placements)
        sizes = sum(column.nbytes for column in columns if column is not None)
        masks = _MASKS * (_MASK + len(self) // 8)
        own = _OBJECTS + masks + sizes + self.partitions.nbytes
        return int(own) + sum(each.nbytes for each in self._rendered.values())

    def name(self, row: int) -> bytes:
        name: bytes = self.names[row].as_py()
        return name

    def row(self, row: int) -> TopicRow:
        """All of one topic."""
        topic_id: bytes = NO_ID if self.ids is None else self.ids[row].as_py()
        placement = None if self.placements is None else self.placements[row].as_py()
        return TopicRow(self.name(row), int(self.partitions[row]), topic_id, placement)

    def place(self, name: bytes) -> int:
        """The row of the first topic whose name is not less."""
        return bisect_left(range(len(self)), name, key=self.name)

    def known(self, family: Hashable) -> RenderedChunk | None:
        """The topics in one encoding, if it is cached."""
        return self._rendered.get(family)

    def rendered(self, family: Hashable, render: Callable[[TopicChunk], RenderedChunk]) -> RenderedChunk:
        """The topics in one encoding, which is made at its first use. For any thread."""
        found = self._rendered.get(family)
        if found is None:
            self._renders[family] = render
            found = self._rendered.setdefault(family, render(self))
            self._unheld.append((family, found))
        return found

    def picked(self, other: TopicChunk, order: Array) -> TopicChunk:
        """A chunk of the topics that ``order`` numbers: first the rows of this chunk, then those of ``other``.

        Cached encodings of this chunk are picked as well, and not rendered again.
        """
        rows = pa.array(order)
        made: TopicChunk = _taken(self.joined(other), order)
        for family, known in list(self._rendered.items()):
            fresh = other.rendered(family, self._renders[family])
            column = pa.concat_arrays([known.column(), fresh.column()]).take(rows)
            made._renders[family] = self._renders[family]
            made._rendered[family] = RenderedChunk.of_column(column)
        return made

    def some(self, rows: Array) -> TopicChunk:
        """The topics of ascending rows, as a chunk of their own without cached encodings. Consecutive rows share the

        memory of this chunk.
        """
        if not len(rows) or int(rows[-1]) - int(rows[0]) + 1 != len(rows):
            return _taken(self, rows)
        low, size = int(rows[0]), len(rows)
        ids, placements = self.ids, self.placements
        return TopicChunk(
            self.names.slice(low, size),
            self.partitions[low : low + size],
            None if ids is None else ids.slice(low, size),
            None if placements is None else placements.slice(low, size),
        )

    def joined(self, other: TopicChunk) -> TopicChunk:
        """The topics of this chunk followed by those of another; without cached encodings."""
        return TopicChunk(
            pa.concat_arrays([self.names, other.names]),
            np.concatenate([self.partitions, other.partitions]),
            _both(self.ids, other.ids),
            _both(self.placements, other.placements),
        )

    def take_unheld(self) -> list[tuple[Hashable, RenderedChunk]]:
        """Encodings cached since the last call: their memory has to be counted, or they have to be forgotten."""
        if not self._unheld:
            return []
        unheld, self._unheld = self._unheld, []
        return unheld

    def forget(self, family: Hashable) -> None:
        """Keep an encoding no longer."""
        self._rendered.pop(family, None)


def _both(
    first: pa.LargeBinaryArray | None, second: pa.LargeBinaryArray | None
) -> pa.LargeBinaryArray | None:
    """One column of two; ``None`` if one of them is not known."""
    return None if first is None or second is None else pa.concat_arrays([first, second])


def _taken(chunk: TopicChunk, rows: Array) -> TopicChunk:
    """The topics of some rows, in any order."""
    at, ids, placements = pa.array(rows), chunk.ids, chunk.placements
    return TopicChunk(
        chunk.names.take(at),
        chunk.partitions[rows],
        None if ids is None else ids.take(at),
        None if placements is None else placements.take(at),
    )
