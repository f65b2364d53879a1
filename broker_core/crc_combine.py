"""CRC32C of a text from the CRC32C of its parts, without the parts: what makes the hashes of segments one hash.

``crc(a + b) = shift(crc(a), len(b)) ^ crc(b)``, where a shift by a zero byte is linear over GF(2). Shifts by every
power of two are kept as four tables of 256 words, so that a shift by any length is as many look-ups as the length has
bits; all functions take whole columns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import google_crc32c
import numpy as np

__all__ = ["combined", "joined_groups", "shifted"]

_POLYNOMIAL: Final = 0x82F63B78  # CRC32C (Castagnoli), bits reversed
_MOST_BITS: Final = 48  # lengths are below 2**48 bytes
_COMMA: Final = int(google_crc32c.value(b","))
_Array = np.ndarray[Any, Any]


@lru_cache(maxsize=1)
def _operators() -> tuple[_Array, ...]:
    """For each power of two the operator that shifts by so many zero bytes: uint32 of shape (4, 256)."""
    register = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        register = (register >> np.uint32(1)) ^ (_POLYNOMIAL * (register & np.uint32(1))).astype(np.uint32)
    values = np.arange(256, dtype=np.uint32)
    operator = np.stack([register, *(values << np.uint32(8 * (byte - 1)) for byte in (1, 2, 3))])
    operators = [operator]
    for _ in range(_MOST_BITS - 1):
        operators.append(_applied(operators[-1], operators[-1]))
    return tuple(operators)


def _applied(operator: _Array, crcs: _Array) -> _Array:
    """What an operator makes of each CRC."""
    result: _Array = operator[0][crcs & 0xFF]
    for byte in (1, 2, 3):
        result = result ^ operator[byte][(crcs >> np.uint32(8 * byte)) & 0xFF]
    return result


def shifted(crcs: _Array, sizes: _Array) -> _Array:
    """Each CRC (uint32) moved in front of ``sizes`` bytes: XOR with the CRC of those makes it that of both."""
    result = np.array(crcs, np.uint32)
    sizes = np.asarray(sizes, np.uint64)
    if len(sizes) and int(sizes.max()) >> _MOST_BITS:
        raise ValueError(f"a length of {int(sizes.max())} bytes: at most 2**{_MOST_BITS}")
    for bit, operator in enumerate(_operators()):
        rows = np.flatnonzero((sizes >> np.uint64(bit)) & np.uint64(1))
        if len(rows):
            result[rows] = _applied(operator, result[rows])
        elif not (sizes >> np.uint64(bit)).any():
            break
    return result


def combined(first: int, second: int, second_size: int) -> int:
    """The CRC32C of a text from those of its halves and the length of the second, in bytes."""
    return int(shifted(np.array([first]), np.array([second_size]))[0]) ^ second


def joined_groups(crcs: _Array, sizes: _Array, starts: _Array) -> tuple[_Array, _Array]:
    """The CRC32C and the length of parts joined by commas, for many groups at once.

    ``crcs`` (uint32) and ``sizes`` (bytes) are of all parts, group by group and in order; ``starts`` are the first
    parts of the groups, none of which is empty. Gives (uint32, uint64), one a group.
    """
    sizes = np.asarray(sizes, np.uint64)
    if not len(starts):
        return np.empty(0, np.uint32), np.empty(0, np.uint64)
    # Each part but the first of its group has a comma in front, which is linear as well.
    has_comma = np.ones(len(sizes), bool)
    has_comma[starts] = False
    commas = np.where(has_comma, np.uint32(_COMMA), np.uint32(0)).astype(np.uint32)
    parts = shifted(commas, sizes) ^ np.asarray(crcs, np.uint32)
    lengths = sizes + has_comma.astype(np.uint64)
    ends = np.cumsum(lengths)
    totals = np.add.reduceat(lengths, starts)
    counts = np.diff(np.append(starts, len(sizes)))
    behind = np.repeat(ends[np.append(starts[1:], len(sizes)) - 1], counts) - ends
    return np.bitwise_xor.reduceat(shifted(parts, behind), starts), totals
