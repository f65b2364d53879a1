"""Chunks of names that were encoded elsewhere, by a plugin or in a mapped file, and are not trusted."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from broker_core.errors import InvalidListing
from broker_core.listing.chunks.build_chunks import chunk_size
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.fields.fields_codec import name_start
from broker_core.memory import map_of
from broker_core.names import NON_PERSISTENT, PERSISTENT, Array, Mode, NamespaceName, column_data

__all__ = ["claimed_chunks"]


def claimed_chunks(
    namespace: NamespaceName, mode: Mode, columns: Sequence[pa.LargeBinaryArray], *, mapped: bool
) -> list[Chunk]:
    """The chunks of columns of fields that follow each other: checked before they are sent.

    ``mapped`` claims that the one column is a mapped file; if it is, nothing is copied. Raises
    :exc:`~broker_core.errors.InvalidListing` for anything but columns of fields.
    """
    # A column without topics is checked too, and then makes no chunk.
    parts = [_checked_column(column) for column in columns]
    file = map_of(parts[0][0]) if mapped and len(parts) == 1 else None
    chunks: list[Chunk] = []
    if file is None:
        for buffer, offsets in parts:
            chunks += _chunks(namespace, mode, buffer, _own(offsets))
    else:
        if file.has_name:
            warnings.warn(
                f"{file.path} is mapped for a listing and still has a name: "
                "a process that cuts it short ends this one",
                RuntimeWarning,
                stacklevel=4,
            )
        column, (buffer, offsets) = columns[0], parts[0]
        held = column.buffers()[1]
        are_mapped = held is not None and map_of(held) is not None
        if are_mapped:  # by the very buffer that was checked
            offsets = np.frombuffer(held, np.int64)[column.offset : column.offset + len(column) + 1]
        chunks += _chunks(
            namespace,
            mode,
            buffer,
            offsets if are_mapped else _own(offsets),
            mapped=True,
            offsets_mapped=are_mapped,
        )
    return chunks


def _own(offsets: Array) -> Array:
    return np.frombuffer(offsets.tobytes(), np.int64)


def _checked_column(column: object) -> tuple[pa.Buffer, Array]:
    """The memory and offsets of a foreign column, after a check of its type."""
    if not isinstance(column, pa.Array) or not pa.types.is_large_binary(column.type):
        kind = column.type if isinstance(column, pa.Array) else type(column).__name__
        raise InvalidListing(f"encoded names are a column of large_binary, not of {kind}")
    try:
        column.validate()
    except pa.ArrowException as error:
        raise InvalidListing(f"encoded names: {error!s:.200}") from None
    if column.null_count:
        raise InvalidListing("encoded names must not be null")
    return column_data(column)


def _chunks(
    namespace: NamespaceName,
    mode: Mode,
    buffer: pa.Buffer,
    offsets: Array,
    *,
    mapped: bool = False,
    offsets_mapped: bool = False,
) -> Iterator[Chunk]:
    """Chunks of a foreign column: copies of what is not mapped."""
    rows = len(offsets) - 1
    first, last = int(offsets[0]), int(offsets[-1])
    if not 0 <= first <= last <= buffer.size:
        raise InvalidListing("the offsets of encoded names do not ascend within their bytes")
    if not rows:
        return
    others = _others(buffer, offsets) if mode is Mode.ALL else 0 if mode is Mode.PERSISTENT else rows
    # By row numbers alone: the offsets in between were not checked.
    step = max(rows * chunk_size().made // max(last - first, 1), 1)
    for domain, begin, end in ((NON_PERSISTENT, 0, others), (PERSISTENT, others, rows)):
        parts = -(-(end - begin) // step)
        cuts = np.unique(np.linspace(begin, end, parts + 1).astype(np.int64)).tolist() if parts else []
        for low, high in pairwise(cuts):
            own = offsets[low : high + 1]
            if mapped:
                yield Chunk.claimed(
                    namespace, domain, buffer, own, mapped=True, offsets_mapped=offsets_mapped
                )
                continue
            start, stop = int(own[0]), int(own[-1])
            if not 0 <= start <= stop <= buffer.size:
                raise InvalidListing("the offsets of encoded names do not ascend within their bytes")
            yield Chunk.claimed(
                namespace, domain, pa.py_buffer(bytes(memoryview(buffer)[start:stop])), own - start
            )


def _others(buffer: pa.Buffer, offsets: Array) -> int:
    """Number of names that are non-persistent, if they are in order, which the check of chunks finds out."""
    data = memoryview(buffer)
    low, high = 0, len(offsets) - 1
    while low < high:
        middle = (low + high) // 2
        start, stop = offsets.item(middle), offsets.item(middle + 1)
        if not 0 <= start < stop <= len(data):
            raise InvalidListing("the offsets of encoded names do not ascend within their bytes")
        if bytes(data[start + name_start(stop - start) : stop][:1]) == b"n":
            low = middle + 1
        else:
            high = middle
    return low
