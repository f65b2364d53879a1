"""The next version of a listing, with some names taken out and some put in: unchanged chunks are shared by both.

Many names are looked up together, each search bounded by the names that were found before it. If many answers of one
listing get the same changes, the places of their names are remembered with the listing.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.concurrency import Steps, finished
from broker_core.listing.chunks.build_chunks import (
    FEW_NAMES,
    build_chunks,
    chunk_size,
    chunks_of_few,
    cut_chunk,
    joined_chunks,
)
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import Remembered
from broker_core.listing.chunks.chunk_splice import is_quick_to_splice, spliced_chunk
from broker_core.listing.chunks.property_codes import PropertyCodes
from broker_core.listing.fields.fields_codec import gathered
from broker_core.listing.listing_data import ListingData
from broker_core.names import (
    NON_PERSISTENT,
    PERSISTENT,
    Array,
    as_column,
    hash_order_bytes,
    hash_order_keys,
    split_full_names,
)

__all__ = [
    "ChunkChange",
    "ListingChange",
    "Place",
    "locate",
    "places",
    "remembered_places",
    "splice",
    "splicing",
]


#: The number of a chunk, the row of it where a name is or would be inserted, and whether it is there.
Place: TypeAlias = tuple[int, int, bool]
#: With fewer names than one for so many chunks, reading the first name of every chunk costs more.
_CHUNKS_A_NAME: Final = 8
#: Fewer names are looked up again each time.
_REMEMBERED: Final = 64
#: No key has this byte (:mod:`~broker_core.names.hash_order`).
_BETWEEN_KEYS: Final = b"\xf8"


def locate(data: ListingData, keys: Sequence[bytes]) -> tuple[Array, Array]:
    """Row of each key, in any order, or its insertion point (int64), and whether the key exists."""
    rows, present = np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    if all(before <= key for before, key in pairwise(keys)):
        order: Sequence[int] = range(len(keys))
    else:
        order = sorted(range(len(keys)), key=keys.__getitem__)
        keys = [keys[index] for index in order]
    if data.chunks:
        for index, (number, row, is_there) in zip(order, places(data, keys), strict=True):
            rows[index] = data.start(number) + row
            present[index] = is_there
    return rows, present


def places(data: ListingData, keys: Sequence[bytes], low: int = 0, high: int | None = None) -> list[Place]:
    """The place of each key of a name (:func:`~broker_core.names.hash_order.hash_order_bytes`); keys ascend.

    Only the chunks number ``low`` to ``high`` are searched.
    """
    if len(keys) * _CHUNKS_A_NAME <= len(data.chunks) or len(keys) < 2:
        return [data.place(key, low, high) for key in keys]
    firsts, last = data.first_keys, len(data.chunks) if high is None else high
    found: list[Place] = []
    begin = 0
    while begin < len(keys):
        after = bisect_right(firsts, keys[begin], low, last)
        if after == low:
            found.append((low, 0, False))
            begin += 1
            continue
        end = len(keys) if after == last else bisect_left(keys, firsts[after], begin)
        found += _places_in(data.chunks[after - 1], after - 1, keys[begin:end])
        begin = end
    return found


def remembered_places(data: ListingData, keys: Sequence[bytes]) -> list[Place]:
    """The place of each key of a name in all chunks. The listing remembers many, if it has room for them."""
    if len(keys) < _REMEMBERED:
        return places(data, keys)
    digest = hashlib.blake2b(_BETWEEN_KEYS.join(keys), digest_size=16).digest()
    memo_key = (Remembered.PLACES, digest), None
    known: Array | None = data.memo.get(memo_key)
    if known is None:
        known = np.array(places(data, keys), np.int32)
        data.memo.put(memo_key, known, known.nbytes)
    return [(number, row, is_there == 1) for number, row, is_there in known.tolist()]


def _places_in(chunk: Chunk, number: int, keys: Sequence[bytes]) -> list[Place]:
    key_at = chunk.key_reader()
    found: list[Place] = [(number, 0, False)] * len(keys)
    # (keys from, to; rows from, to): the one in the middle is looked up, and bounds those on both sides.
    left = [(0, len(keys), 0, chunk.size)]
    while left:
        low, high, first, last = left.pop()
        middle = (low + high) // 2
        key = keys[middle]
        row = bisect_left(range(last), key, first, last, key=key_at)
        is_there = row < chunk.size and key_at(row) == key
        found[middle] = number, row, is_there
        if low < middle:
            left.append((low, middle, first, row))
        if middle + 1 < high:
            left.append((middle + 1, high, row, last))
    return found


#: With more changed names than this, and more than this part of the listing, building anew is quicker.
_MANY: Final = 2000
_MANY_PART: Final = 50


@dataclass(slots=True)
class ListingChange:
    """Names to take out of a listing, and names to put in.

    ``removed`` and ``added`` are full names; each of ``added`` is a name of the listing's namespace and mode. A name in
    both stays. ``properties`` has the values of selecting properties of each added name, also if it is there
    already.
    """

    removed: Sequence[str] | pa.LargeStringArray
    added: Sequence[str] | pa.LargeStringArray
    properties: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)


@dataclass(slots=True)
class ChunkChange:
    """Changes in one chunk, or in a piece of one: rows that are ``gone``; the rows ``fresh`` of the addition, each put
    before a row in ``put``; ``kept`` rows that get the values of the addition's rows ``kept_from``."""

    gone: list[int] = field(default_factory=list)
    put: list[int] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    kept_from: list[int] = field(default_factory=list)


class _Window(NamedTuple):
    """The chunks that replace the chunks number ``first`` to ``end`` after a change."""

    first: int
    end: int
    chunks: Sequence[Chunk]


def splice(listing: ListingData, changed: ListingChange) -> ListingData:
    """``listing`` after a change. Costs the chunks that have the changed names, and a binary search for each name.

    Raises :exc:`~broker_core.errors.InvalidListing` for an added name that cannot be in the listing.
    """
    return finished(splicing(listing, changed))


def splicing(listing: ListingData, changed: ListingChange) -> Steps[ListingData]:
    """The steps of :func:`splice`: one before the first chunk, which is quick for few names, and one for each chunk."""
    listing.check_borders()
    if len(changed) > _MANY and len(changed) * _MANY_PART > listing.size:
        return _rebuilt(listing, changed)
    additions = _additions(listing, changed)
    removed = sorted(_keys(changed.removed))
    others = bisect_left(
        listing.chunks, PERSISTENT, key=attrgetter("domain")
    )  # the non-persistent come first
    windows: list[_Window] = []
    came: list[bytes] = []
    went: list[bytes] = []
    for domain, low, high in (
        (NON_PERSISTENT, 0, others),
        (PERSISTENT, others, len(listing.chunks)),
    ):
        prefix = f"{domain}://".encode()
        keys = [key for key in removed if key.startswith(prefix)]
        addition = [chunk for chunk in additions if chunk.domain == domain]
        if keys or addition:
            window = yield from _splicing_domain(listing, low, high, keys, addition, came, went)
            if window is not None:
                windows.append(window)
    made = listing
    for window in reversed(windows):  # the chunks before a window keep their numbers
        made = made.replaced(*window)
    if made is not listing and len(changed) <= FEW_NAMES:
        made.know_changes(listing, came, went)
    return made


def _additions(listing: ListingData, changed: ListingChange) -> list[Chunk]:
    """The chunks of the added names."""
    namespace, added = listing.namespace, changed.added
    if len(added) <= FEW_NAMES:
        few = added.to_pylist() if isinstance(added, pa.Array) else added
        return chunks_of_few(namespace, listing.mode, few, changed.properties)
    names = as_column(added)
    persistent, other = split_full_names(names, namespace, listing.mode)
    columns = {key: pa.array(values, pa.large_string()) for key, values in changed.properties.items()}
    return build_chunks(namespace, persistent, other, _by_domain(names, columns))


def _by_domain(
    names: pa.LargeStringArray, columns: Mapping[str, pa.LargeStringArray]
) -> Mapping[str, Mapping[str, pa.LargeStringArray]]:
    """The values of properties for the names of each domain, in their order."""
    if not columns:
        return {}
    mine = pc.starts_with(names, PERSISTENT)
    others = pc.invert(mine)
    return {
        PERSISTENT: {key: column.filter(mine) for key, column in columns.items()},
        NON_PERSISTENT: {key: column.filter(others) for key, column in columns.items()},
    }


def _splicing_domain(
    listing: ListingData,
    low: int,
    high: int,
    removed: Sequence[bytes],
    addition: Sequence[Chunk],
    came: list[bytes],
    went: list[bytes],
) -> Steps[_Window | None]:
    """The changes in the chunks number ``low`` to ``high``, all of one domain; ``None`` if there are none.

    The keys of names that come and go are appended to ``came`` and ``went``.
    """
    fresh = joined_chunks(addition) if addition else None
    fresh_keys = _keys_of(fresh)
    if low == high:
        came += fresh_keys
        return _Window(low, high, addition) if addition else None
    touched: dict[int, ChunkChange] = {}
    kept: set[tuple[int, int]] = set()
    for index, (number, row, is_there) in enumerate(places(listing, fresh_keys, low, high)):
        if is_there:
            kept.add((number, row))
            if fresh is not None and fresh.properties:
                change = touched.setdefault(number, ChunkChange())
                change.kept.append(row)
                change.kept_from.append(index)
            continue
        change = touched.setdefault(number, ChunkChange())
        change.put.append(row)
        change.fresh.append(index)
        came.append(fresh_keys[index])
    for key, (number, row, is_there) in zip(removed, places(listing, removed, low, high), strict=True):
        if is_there and (number, row) not in kept:
            touched.setdefault(number, ChunkChange()).gone.append(row)
            went.append(key)
    if not touched:
        return None
    own = listing.chunks
    made: list[Chunk] = []
    small: set[int] = set()
    is_changed = False
    first = end = min(touched)
    for number in sorted(touched):
        yield is_quick_to_splice(own[number])
        parts = _after(own[number], touched[number], fresh)
        is_changed = is_changed or len(parts) != 1 or parts[0] is not own[number]
        small.update(id(part) for part in parts if part.fields_size < chunk_size().least)
        made += own[end:number]
        made += parts
        end = number + 1
    if not is_changed:
        return None
    if small and (len(made) > 1 or high - low > 1):
        yield False
        # A neighbour of what changed may be joined with it.
        before, after = own[max(first - 1, low) : first], own[end : min(end + 1, high)]
        made = _merged([*before, *made, *after], small)
        first, end = first - len(before), end + len(after)
    return _Window(first, end, made)


def _after(chunk: Chunk, change: ChunkChange, fresh: Chunk | None) -> Sequence[Chunk]:
    if change.kept and fresh is not None:
        chunk = _with_values(chunk, change, fresh)
    if not change.gone and not change.put:
        return [chunk]
    gone = np.unique(np.array(change.gone, np.int64))
    added = None if fresh is None or not change.fresh else _picked(fresh, change.fresh)
    return cut_chunk(spliced_chunk(chunk, gone, np.array(change.put, np.int64), added))


def _with_values(chunk: Chunk, change: ChunkChange, fresh: Chunk) -> Chunk:
    """The chunk with new values of properties for topics that it has already."""
    properties = dict(chunk.properties)
    for key, codes in fresh.properties.items():
        values = codes.values_at(change.kept_from)
        before = properties[key]
        if before.values_at(change.kept) != values:
            properties[key] = before.with_values(change.kept, values)
    if all(properties[key] is chunk.properties[key] for key in properties):
        return chunk
    return chunk.with_properties(properties)


def _picked(fresh: Chunk, rows: Sequence[int]) -> Chunk:
    """Some rows of a chunk."""
    if len(rows) == fresh.size:
        return fresh
    own = np.array(rows, np.int64)
    fields, offsets = gathered(fresh.fields, fresh.field_offsets, own)
    picked = Chunk(
        fresh.namespace,
        fresh.domain,
        fields,
        offsets,
        {key: codes.take(own) for key, codes in fresh.properties.items()},
    )
    if fresh.is_plain:
        picked.know_plain(True)
    return picked


def _merged(chunks: Sequence[Chunk], small: set[int]) -> list[Chunk]:
    """The chunks, small ones (by identity) joined with a neighbour if both together are not too large."""
    made: list[Chunk] = []
    for chunk in chunks:
        if (
            made
            and (id(made[-1]) in small or id(chunk) in small)
            and made[-1].fields_size + chunk.fields_size <= chunk_size().most
        ):
            made += cut_chunk(joined_chunks([made.pop(), chunk]))
        else:
            made.append(chunk)
    return made


def _rebuilt(listing: ListingData, changed: ListingChange) -> ListingData:
    """The listing after a change so large that all names are sorted anew."""
    names = listing.names(listing.pieces(0, listing.size))
    removed, added = as_column(changed.removed), as_column(changed.added)
    stays = pc.invert(pc.or_(pc.is_in(names, removed), pc.is_in(names, added)))
    columns: dict[str, pa.LargeStringArray] = {}
    for key, values in changed.properties.items():
        before = [
            (chunk.properties.get(key) or PropertyCodes.none(chunk.size)).column() for chunk in listing.chunks
        ]
        kept = pa.concat_arrays([pa.array([], pa.large_string()), *before]).filter(stays)
        columns[key] = pa.concat_arrays([kept, pa.array(values, pa.large_string())])
    names = pa.concat_arrays([names.filter(stays), added])
    persistent, other = split_full_names(names, listing.namespace, listing.mode)
    chunks = build_chunks(listing.namespace, persistent, other, _by_domain(names, columns))
    return ListingData(listing.namespace, listing.mode, chunks)


def _keys(names: Sequence[str] | pa.LargeStringArray) -> list[bytes]:
    """The keys of names, which sort in the order of the hash."""
    if isinstance(names, pa.Array):
        return hash_order_keys(names)
    return [hash_order_bytes(name.encode()) for name in names]


def _keys_of(chunk: Chunk | None) -> Sequence[bytes]:
    if chunk is None:
        return ()
    if chunk.size > FEW_NAMES:
        return _keys(chunk.names(0, chunk.size))
    return [hash_order_bytes(chunk.name(row)) for row in range(chunk.size)]
