"""Building the chunks of a domain while its names are still being read: only the names of a few chunks are held.

Names come a block at a time, about in the order of UTF-8. Names that later ones may still precede have to wait: the
partitions of ``a`` sort after ``a-b``. UTF-16, the order of the hash, differs only for characters beyond the BMP beside
the last ones of the BMP: if both came, all names are sorted at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.chunks.build_chunks import chunk_size, chunks_of_domain, joined_chunks
from broker_core.listing.chunks.chunk import Chunk
from broker_core.names import NamespaceName, column_data, without_ends

__all__ = ["ChunkStream"]

_TEXT = pa.large_string()
#: Lead bytes of the last characters of the BMP, and of those beyond it: UTF-16 puts the latter first.
_LAST, _BEYOND = 0xEE, 0xF0


class ChunkStream:
    """The chunks of one domain, of checked local names: without system topics and duplicates.

    ``keys`` are the properties whose values (or nulls) each block has.
    """

    def __init__(self, namespace: NamespaceName, domain: str, keys: tuple[str, ...] = ()) -> None:
        self._namespace = namespace
        self._domain = domain
        self._head = len(f"{domain}://{namespace}/")
        self._names: list[pa.LargeStringArray] = []
        self._values: dict[str, list[pa.LargeStringArray]] = {key: [] for key in keys}
        self._waiting = 0  # about how many bytes they will be
        self._chunks: list[Chunk] = []
        self._has_last = self._has_beyond = False

    def add(
        self, names: pa.LargeStringArray, values: Mapping[str, pa.LargeStringArray], last: str | None
    ) -> None:
        """A block of names. All names of later blocks are greater than ``last``; ``None``: no block follows."""
        data, offsets = column_data(names)
        text = np.frombuffer(data, np.uint8)[int(offsets[0]) : int(offsets[-1])]
        if len(text) and int(text.max()) >= _LAST:
            self._has_beyond |= int(text.max()) >= _BEYOND
            self._has_last |= bool(((text >= _LAST) & (text < _BEYOND)).any())
        self._names.append(names)
        for key, waiting in self._values.items():
            waiting.append(values[key])
        self._waiting += len(text) + (self._head + 2) * len(names)
        if last is not None and not self._is_mixed and self._waiting >= chunk_size().most:
            self._build(last)

    def chunks(self) -> list[Chunk]:
        """The chunks of all names that were added."""
        if self._is_mixed:
            self._take_back()
        self._build(None)
        made = self._chunks
        if len(made) > 1 and made[-1].fields_size < chunk_size().least:
            end = made.pop()
            if made[-1].fields_size + end.fields_size <= chunk_size().most:
                end = joined_chunks([made.pop(), end])
            made.append(end)
        return made

    @property
    def _is_mixed(self) -> bool:
        """Whether names may come in another order than that of the hash."""
        return self._has_last and self._has_beyond

    def _build(self, last: str | None) -> None:
        """Make chunks of the waiting names up to ``last``."""
        if not self._names:
            return
        names = _joined(self._names)
        values = {key: _joined(parts) for key, parts in self._values.items()}
        self._names = []
        self._values = {key: [] for key in values}
        self._waiting = 0
        if last is not None:
            later = pc.greater(names, pa.scalar(last, _TEXT))
            if later.true_count:
                self._names = [names.filter(later)]
                self._values = {key: [column.filter(later)] for key, column in values.items()}
                self._waiting = self._names[0].nbytes + self._head * later.true_count
                now = pc.invert(later)
                names, values = (
                    names.filter(now),
                    {key: column.filter(now) for key, column in values.items()},
                )
        if len(names):
            self._chunks += chunks_of_domain(self._namespace, self._domain, names, values)

    def _take_back(self) -> None:
        """Take all chunks apart, so that their names wait again."""
        made, self._chunks = self._chunks, []
        self._names = [
            *(without_ends(chunk.names(0, chunk.size), self._head, 0) for chunk in made),
            *self._names,
        ]
        for key, waiting in self._values.items():
            self._values[key] = [*(chunk.properties[key].column() for chunk in made), *waiting]


def _joined(columns: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
