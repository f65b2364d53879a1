"""A chunk with a few rows taken out and a few put in: one copy of its columns; only the changed blocks are hashed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.listing.chunks.build_chunks import chunk_size
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_forms import SortedForms
from broker_core.listing.chunks.property_codes import PropertyCodes
from broker_core.names import Array, column_data, partition_index

__all__ = ["is_quick_to_splice", "spliced_chunk"]

#: With more changes than this, forms are sorted anew when they are needed.
_MANY: Final = 64
#: With more changes than this, and one for fewer rows than these, picking rows one by one is quicker than copying the
#: stretches between the changes.
_FEW: Final = 16
_SHORT_STRETCH: Final = 160
#: With a change for each so many rows, most blocks would be hashed again.
_ROWS_EACH: Final = 512
#: Bytes that are read in some ten microseconds.
_QUICK: Final = 64 * 1024


def is_quick_to_splice(chunk: Chunk) -> bool:
    """Whether :func:`spliced_chunk` takes well under a millisecond for a few rows: only copying is left to do.

    No name of the chunk has to be checked or hashed, and its forms are made.
    """
    if chunk.fields_size <= _QUICK:
        return chunk.is_believed
    return (
        chunk.fields_size <= chunk_size().most - _QUICK  # else it is cut
        and chunk.is_believed
        and chunk.known_blocks is not None
        and chunk.is_searchable
        and chunk.is_plain
    )


def spliced_chunk(chunk: Chunk, gone: Array, put: Array, fresh: Chunk | None) -> Chunk:
    """``chunk`` without the rows ``gone``, with row ``n`` of ``fresh`` before the row ``put[n]``.

    Both ascend, and the result is in order. Chunks are of one namespace and domain, and checked.
    """
    column = chunk.column(0, chunk.size)
    if fresh is None:
        fresh = _nothing_like(chunk)
    added = fresh.column(0, fresh.size)
    data, offsets = column_data(_spliced(column, gone, put, added))
    made = Chunk(chunk.namespace, chunk.domain, data, offsets, _spliced_properties(chunk, gone, put, fresh))
    if _ROWS_EACH * (len(gone) + len(put) - 1) <= chunk.size:  # else all is hashed, when needed
        blocks = chunk.blocks.after(gone.tolist(), put.tolist(), made.column(0, made.size))
        if blocks is not None:
            made.known_blocks = blocks
    # If it is not known whether the chunk is plain, finding out reads all of it.
    if chunk.is_searchable or chunk.fields_size <= _QUICK:
        if chunk.is_plain and fresh.is_plain:
            made.know_plain(True)
        elif not chunk.is_plain and len(gone) + len(put) <= _MANY:
            made.know_forms(_spliced_forms(chunk, gone, put, fresh))
    if chunk.known_newline is False and not fresh.has_newline:
        made.known_newline = False
    return made


def _nothing_like(chunk: Chunk) -> Chunk:
    nothing = Chunk(chunk.namespace, chunk.domain, pa.py_buffer(b""), np.zeros(1, np.int64))
    nothing.know_plain(True)
    return nothing


def _spliced_properties(chunk: Chunk, gone: Array, put: Array, fresh: Chunk) -> dict[str, PropertyCodes]:
    made: dict[str, PropertyCodes] = {}
    for key in chunk.properties.keys() | fresh.properties.keys():
        own = chunk.properties.get(key) or PropertyCodes.none(chunk.size)
        made[key] = own.spliced(gone, put, fresh.properties.get(key) or PropertyCodes.none(fresh.size))
    return made


def _spliced_forms(chunk: Chunk, gone: Array, put: Array, fresh: Chunk) -> SortedForms:
    """The forms of the result, from the forms of its parts: nothing is sorted."""
    forms = chunk.forms
    assert isinstance(forms, SortedForms)
    # The fresh rows in the order of their forms, and the forms of the chunk that they go before.
    size = fresh.size
    rows = fresh.forms.rows(np.arange(size)) if size else np.zeros(0, np.int64)
    added = fresh.forms.between(0, size) if size else pa.array([], pa.large_string())
    form_put = np.array(
        [
            _place(chunk, forms, form.as_buffer().to_pybytes(), fresh.name(row))
            for form, row in zip(added, rows.tolist(), strict=True)
        ],
        np.int64,
    )
    form_gone = np.sort(forms.places(gone))
    column = _spliced(forms.column, form_gone, form_put, added)
    # The new position of each old and each fresh row.
    shift = np.zeros(chunk.size + 1, np.int32)
    np.add.at(shift, put, 1)
    np.subtract.at(shift, gone + 1, 1)
    moved = np.cumsum(shift, out=shift)[:-1] + np.arange(chunk.size, dtype=np.int32)
    old = moved if forms.order is None else moved[forms.order]
    wanted = put[rows]
    new = wanted - np.searchsorted(gone, wanted) + rows
    kept = np.delete(old, form_gone)
    order = np.insert(kept, form_put - np.searchsorted(form_gone, form_put), new)
    is_identity = bool((order[1:] > order[:-1]).all())
    return SortedForms(column, None if is_identity else order.astype(np.int32, copy=False))


def _place(chunk: Chunk, forms: SortedForms, form: bytes, name: bytes) -> int:
    """The position that a fresh name goes before: after the partitions of its topic with smaller numbers."""
    low, high = forms.range(form, form + b"\0")
    if low == high:
        return low

    def number(position: int) -> int:
        return _number(chunk.name(int(forms.rows(np.array([position]))[0])))

    return bisect_left(range(high), _number(name), low, high, key=number)


def _number(name: bytes) -> int:
    return partition_index(name.decode().rpartition("/")[2])


def _spliced(column: Any, gone: Array, put: Array, inserted: Any) -> Any:
    """``column`` without the rows ``gone`` and with ``inserted`` before the rows ``put``."""
    count = len(gone) + len(put)
    if count > _FEW and _SHORT_STRETCH * count > len(column):
        kept = np.delete(np.arange(len(column)), gone)
        places = put - np.searchsorted(gone, put)
        order = np.insert(kept, places, len(column) + np.arange(len(put)))
        return pa.concat_arrays([column, inserted]).take(pa.array(order))
    pieces = _pieces(column, gone.tolist(), put.tolist(), inserted)
    if not pieces:
        return column.slice(0, 0)
    return _joined(pieces) if count <= _FEW and column.nbytes > _QUICK else pa.concat_arrays(pieces)


def _joined(pieces: Sequence[Any]) -> Any:
    """Columns of text one after the other, copied to memory of the C library.

    It has what the last such copy left, where Arrow's pool takes new memory from the system as a rule, page by page
    or 2 MiB at a time, which takes several times as long as the copy.
    """
    columns = [column_data(piece) for piece in pieces]
    sizes = [offsets.item(-1) - offsets.item(0) for _, offsets in columns]
    size = sum(sizes)
    # Rounded up, by a sixteenth at the most, so that the place of one copy fits the next.
    step = 1 << max(size.bit_length() - 5, 0)
    data = np.empty(-(-size // step) * step, np.uint8)
    ends = np.zeros(sum(map(len, pieces)) + 1, np.int64)
    at, row = 0, 1
    for (source, offsets), size in zip(columns, sizes, strict=True):
        start, last = offsets.item(0), row + len(offsets) - 1
        data[at : at + size] = np.frombuffer(source, np.uint8, size, start)
        np.add(offsets[1:], at - start, out=ends[row:last])
        at, row = at + size, last
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data).slice(0, at)]
    return pa.Array.from_buffers(pieces[0].type, len(ends) - 1, buffers)


def _pieces(column: Any, gone: Sequence[int], put: Sequence[int], inserted: Any) -> list[Any]:
    pieces: list[Any] = []
    dropped = set(gone)
    cuts = sorted({0, len(column), *dropped, *(row + 1 for row in dropped), *put})
    for start, stop in pairwise([*cuts, len(column)]):
        first, last = bisect_left(put, start), bisect_right(put, start)
        if first < last:
            pieces.append(inserted.slice(first, last - first))
        if start < stop and start not in dropped:
            pieces.append(column.slice(start, stop - start))
    return pieces
