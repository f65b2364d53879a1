"""The hash of a listing after a few changes, for which only the names around them are hashed again.

The CRC of a stretch of a text follows from those of what ends in front of it and with it. So of each block of a listing
the CRCs of the names in front of some marks are kept, and a stretch from mark to mark takes no look at its names. They
are made of a block when they are first wanted, and are among what a listing may remember.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import google_crc32c
import numpy as np
import pyarrow as pa

from broker_core.listing.crc_combine import shifted
from broker_core.listing.fields_codec import decode_fields
from broker_core.listing.topics_hash import extend_crc
from broker_core.names.name_columns import column_data

if TYPE_CHECKING:
    from broker_core.listing.listing_data import ListingData

__all__ = ["Kept", "crc_of_fields", "crc_of_spliced"]

#: ``(position, low, high)``: the names from ``position`` on are rows ``low`` to ``high`` of a listing.
Kept: TypeAlias = tuple[int, int, int]

#: Rows of a block: those that are checked together. Rows from one mark to the next.
_BLOCK: Final = 4096
_STEP: Final = 128
_MARKS: Final = _BLOCK // _STEP
#: Of fewer names all are hashed: with edits, that takes no longer.
_FEW: Final = 2 * _BLOCK
#: Names that are decoded at a time.
_HASHED: Final = 64 * 1024
_COMMA: Final = int(google_crc32c.value(b","))
#: For each mark of a block the CRC32C and the bytes of the names in front of it, each behind a comma.
_Marks: TypeAlias = "tuple[array[int], array[int]]"
#: ``(position, block, first, last)``: the names from ``position`` on are those between two marks of a block.
_Marked: TypeAlias = tuple[int, int, int, int]


def crc_of_fields(fields: pa.LargeBinaryArray) -> int:
    """The CRC32C of the names in encoded fields, joined by commas."""
    crc, comma = 0, 1  # a comma stands in front of each name, but not of the first
    for low in range(0, len(fields), _HASHED):
        data, offsets = column_data(decode_fields(fields.slice(low, _HASHED), comma=True))
        crc = extend_crc(crc, memoryview(data)[int(offsets[0]) + comma : int(offsets[-1])])
        comma = 0
    return crc


def crc_of_spliced(fields: pa.LargeBinaryArray, kept: Sequence[Kept], listing: ListingData) -> int:
    """The same, where stretches of the fields (in order) are rows of ``listing`` that were checked."""
    if len(fields) < _FEW or not kept or not listing.is_checked(kept[0][1], kept[-1][2]):
        return crc_of_fields(fields)  # quicker, or what is around these rows was not looked at
    marked = [one for stretch in kept for one in _between_marks(*stretch)]
    if 4 * sum(_STEP * (last - first) for _, _, first, last in marked) < len(fields) or not marked:
        return crc_of_fields(fields)
    # What is hashed: the names between those that are between marks.
    loose: list[tuple[int, int]] = []
    position = 0
    for begin, _, first, last in marked:
        loose.append((position, begin))
        position = begin + _STEP * (last - first)
    loose.append((position, len(fields)))
    texts = _texts(fields, loose)
    # The parts of the text, a comma in front of each name: their CRCs, and how many bytes end with them.
    end = len(texts[0])
    crcs, ends = [extend_crc(0, texts[0])], [end]
    marks: _Marks | None = None
    known = -1
    for (_, block, first, last), text in zip(marked, texts[1:], strict=True):
        if marks is None or block != known:
            marks, known = _marks(listing, block), block
        upto, sizes = marks
        # crc(b) = crc(a + b) ^ shift(crc(a), len(b))
        crcs.append(upto[first])
        ends.append(end)
        end += sizes[last] - sizes[first]
        crcs.append(upto[last])
        ends.append(end)
        if len(text):
            end += len(text)
            crcs.append(extend_crc(0, text))
            ends.append(end)
    crcs.append(_COMMA)  # and without the first comma
    ends.append(1)
    behind = end - np.array(ends, np.int64)
    return int(np.bitwise_xor.reduce(shifted(np.array(crcs, np.uint32), behind)))


def _between_marks(position: int, low: int, high: int) -> Iterator[_Marked]:
    """The parts of a stretch that are between marks, block by block."""
    first, last = -(-low // _STEP), high // _STEP
    while first < last:
        block, place = divmod(first, _MARKS)
        stop = min(last - block * _MARKS, _MARKS)
        yield position + first * _STEP - low, block, place, stop
        first += stop - place


def _marks(listing: ListingData, block: int) -> _Marks:
    low, high = block * _BLOCK, min((block + 1) * _BLOCK, len(listing))
    key = ("\0marks", (low, high))
    known: _Marks | None = listing.memo.get(key)
    if known is not None:
        return known
    data, offsets = column_data(decode_fields(listing.column(low, high), comma=True))
    text, edges = memoryview(data), offsets[::_STEP].tolist()
    crc, crcs = 0, array("I", [0])
    for start, stop in pairwise(edges):
        crc = google_crc32c.extend(crc, text[start:stop].tobytes())
        crcs.append(crc)
    sizes = array("Q", [edge - edges[0] for edge in edges])
    size = crcs.itemsize * len(crcs) + sizes.itemsize * len(sizes)
    made: _Marks = listing.memo.put_first(key, (crcs, sizes), size)
    return made


def _texts(fields: pa.LargeBinaryArray, rows: Sequence[tuple[int, int]]) -> list[memoryview]:
    """The names in each of these stretches, each behind a comma."""
    some = pa.concat_arrays(
        [fields.slice(low, high - low) for low, high in rows if low < high] or [fields[:0]]
    )
    data, offsets = column_data(decode_fields(some, comma=True))
    counts: Any = np.cumsum([0, *(high - low for low, high in rows)])
    text = memoryview(data)
    return [text[start:stop] for start, stop in pairwise(offsets[counts].tolist())]
