"""Boundaries of segments: each name decides whether it begins one, so any number of tasks cuts alike.

All names of a catalogue have one order: by namespace, then non-persistent before persistent, then by the UTF-16 code
units of the local name. A name begins a segment if a hash of its full name is small. The limit grows with the length of
the name, so that segments have :data:`SEGMENT_BYTES` of names on average. The first name of all begins a segment too.

A new or deleted name changes only its own segment. One in a hundred thousand new names cuts its segment in two.

The names between two such boundaries are a *stretch*. A stretch of more than the largest segment is cut again, at names
whose hash is small for half the average size, then for a quarter, until each piece fits. So the pieces of a stretch
depend on its names alone.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from broker_core.names import MAX_NAME_BYTES
from broker_core_spark.arrow_columns import Array, buffer_and_offsets

__all__ = ["LARGEST_FACTOR", "SEGMENT_BYTES", "begins_segment", "cut_levels", "name_hashes", "piece_starts"]

#: Average bytes of full names in a segment: about 130,000 names.
SEGMENT_BYTES: Final = 8 * 1024 * 1024
#: The largest segment, in average ones, unless a build says otherwise.
LARGEST_FACTOR: Final = 2

_FACTOR: Final = 0x9E3779B97F4A7C15  # odd, so its powers have inverses modulo 2**64
_BLOCK: Final = 256 * 1024  # bytes hashed together


@lru_cache(maxsize=1)
def _powers() -> tuple[Array, Array]:
    """The powers of the factor and their inverses modulo 2**64, for every position in a block."""
    places = _BLOCK + MAX_NAME_BYTES + 1
    tables = []
    for base in (_FACTOR, pow(_FACTOR, -1, 1 << 64)):
        table = np.full(places, base, np.uint64)
        table[0] = 1
        tables.append(np.multiply.accumulate(table))
    return tables[0], tables[1]


def name_hashes(prefix: bytes, names: pa.LargeStringArray) -> Array:
    """A hash of ``prefix`` and each name together (uint64): a polynomial in its bytes, then mixed.

    ``h = sum((byte[i] + 1) * 0x9E3779B97F4A7C15**i)``, then the finalizer of SplitMix64; modulo 2**64.
    """
    data, offsets = buffer_and_offsets(names)
    sizes = np.diff(offsets)
    if len(sizes) and int(sizes.max()) > MAX_NAME_BYTES:
        raise ValueError(f"a name of {int(sizes.max())} bytes: at most {MAX_NAME_BYTES}")
    powers, inverses = _powers()
    every = np.frombuffer(data, np.uint8) if data.size else np.empty(0, np.uint8)
    hashes = np.empty(len(names), np.uint64)
    row = 0
    while row < len(names):
        stop = int(np.searchsorted(offsets, offsets[row] + _BLOCK, side="right")) - 1
        stop = min(max(stop, row + 1), len(names))
        first = int(offsets[row])
        block = every[first : int(offsets[stop])].astype(np.uint64) + np.uint64(1)
        sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(block * powers[: len(block)])))
        starts, ends = offsets[row:stop] - first, offsets[row + 1 : stop + 1] - first
        hashes[row:stop] = (sums[ends] - sums[starts]) * inverses[starts]
        row = stop
    head = sum((byte + 1) * pow(_FACTOR, place, 1 << 64) for place, byte in enumerate(prefix)) % (1 << 64)
    hashes = hashes * np.uint64(pow(_FACTOR, len(prefix), 1 << 64)) + np.uint64(head)
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = hashes ^ (hashes >> np.uint64(31))
    return mixed


def begins_segment(
    namespace: str, domain: str, names: pa.LargeStringArray, *, target: int = SEGMENT_BYTES
) -> Array:
    """Whether each local name is the first of a segment (bool). The names may have any order.

    A name is the first if its hash is less than ``size * (2**64 // target - 1)``, where ``size`` is the bytes of its
    full name.
    """
    levels, _ = cut_levels(namespace, domain, names, target=target)
    result: Array = levels == 0
    return result


def cut_levels(
    namespace: str, domain: str, names: pa.LargeStringArray, *, target: int = SEGMENT_BYTES
) -> tuple[Array, Array]:
    """(the level at which each local name begins a piece, the bytes of its full name), both int64.

    A name of level ``n`` would begin a segment of an average size of ``target / 2**n``: names of level 0 do begin one.
    """
    prefix = f"{domain}://{namespace}/".encode()
    sizes = np.diff(buffer_and_offsets(names)[1]) + len(prefix)
    limits = np.minimum(sizes, target).astype(np.uint64) * np.uint64(2**64 // target - 1)
    # hash < limit * 2**n if hash // limit < 2**n, so n is the length in bits of the quotient.
    _, levels = np.frexp((name_hashes(prefix, names) // np.maximum(limits, np.uint64(1))).astype(np.float64))
    return levels.astype(np.int64), sizes


def piece_starts(levels: Array, sizes: Array, largest: int) -> list[int]:
    """The first rows of the pieces of a stretch, whose names have these levels and sizes. The first is 0."""
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    starts: list[int] = []
    pending = [(0, len(sizes), 0)]
    while pending:
        low, high, level = pending.pop()
        if high - low > 1 and int(ends[high] - ends[low]) > largest:
            cuts = (np.flatnonzero(levels[low + 1 : high] <= level + 1) + low + 1).tolist()
            bounds = [low, *cuts, high]
            pending += [(start, stop, level + 1) for start, stop in pairwise(bounds)]
        else:
            starts.append(low)
    return sorted(starts)
