"""The hash of a listing, as Pulsar's ``TopicList.calculateHash`` computes it, of names or of the sums of parts.

docs/reference/pulsar-behaviour.md#the-topics-hash

Names sorted by Java's ``String`` order (UTF-16 code units), joined by commas, CRC32C over the UTF-8 bytes, shown as
the four bytes in little-endian order in lower-case hex: ``00000000`` for no names. Duplicates count; commas in names
are not escaped.

The CRC32C of consecutive texts as one text follows from the CRC32C of each: made once, and updated after a change.
``crc(a + b) = shift(crc(a), len(b)) ^ crc(b)``, and a shift by a zero byte is linear over GF(2). Shifts by every length
of one digit (of 16) are kept as four tables of 256 words each, so that a shift by any length is as many look-ups as the
length has digits; all functions take whole columns.

So each CRC is shifted past all texts after it; the XOR of all is the CRC of the whole. If a text changes its size, the
CRCs before it are shifted by the difference only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import google_crc32c
import numpy as np

if TYPE_CHECKING:  # clients have the hash without Arrow
    from broker_core.names import Array

__all__ = [
    "COMMA_CRC",
    "EMPTY_HASH",
    "JoinedCrcs",
    "TextCrc",
    "crc_text",
    "crcs_of_parts",
    "extend_crc",
    "joined",
    "joined_groups",
    "shifted",
    "shifted_alike",
    "shifted_one",
    "topics_hash",
    "utf16_key",
    "with_first_comma",
    "without_first_comma",
]

EMPTY_HASH = "00000000"

#: The library takes immutable bytes only, so buffers go through it in copies that stay inside of the CPU's cache.
_STEP = 256 * 1024


def topics_hash(names: Iterable[str]) -> str:
    """The hash of full topic names in any order; a name a Python object, so for small sets, clients and tests."""
    joined = ",".join(sorted(names, key=utf16_key))
    return crc_text(google_crc32c.value(joined.encode()))


def utf16_key(name: str) -> bytes:
    """A key that sorts as Java sorts strings: by UTF-16 code units, in which U+1F600 comes before U+E000."""
    return name.encode("utf-16-be", "surrogatepass")


def extend_crc(crc: int, buffer: memoryview) -> int:
    """The CRC32C of the bytes that ``crc`` is of, followed by ``buffer`` (contiguous bytes)."""
    for start in range(0, len(buffer), _STEP):
        crc = google_crc32c.extend(crc, bytes(buffer[start : start + _STEP]))
    return crc


def crcs_of_parts(buffer: memoryview, starts: Array, stops: Array) -> Array:
    """The CRC32C (uint32) of each part of a buffer (contiguous bytes)."""
    value = google_crc32c.value
    return np.array(
        [
            value(buffer[start:stop].tobytes())
            if stop - start <= _STEP
            else extend_crc(0, buffer[start:stop])
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ],
        np.uint32,
    )


def crc_text(crc: int) -> str:
    """A CRC32C as Guava's ``HashCode.toString`` shows it: little-endian hex, always 8 characters."""
    return crc.to_bytes(4, "little").hex()


_POLYNOMIAL: Final = 0x82F63B78  # CRC32C (Castagnoli), bits reversed
_MOST_BITS: Final = 48  # lengths are below 2**48 bytes
_DIGIT: Final = 4  # bits
#: The offset of the table of each byte of a CRC.
_BYTES: Final = np.arange(0, 1024, 256)
COMMA_CRC: Final = int(google_crc32c.value(b","))


@lru_cache(maxsize=2 * _MOST_BITS // _DIGIT)
def _operators(digit: int, *, back: bool = False) -> Array:
    """Tables of the shifts by each value of a digit, 0 first, or of shifts ``back``: uint32, flat (16 * 4 * 256)."""
    if digit:
        # The last of the digit before shifts by 15 of its units; one unit more makes one of this digit's.
        before = _operators(digit - 1, back=back).reshape(-1, 1024)
        unit = _applied(before[1], before[-1])
    else:
        register = np.arange(256, dtype=np.uint32)
        for _ in range(8):
            register = (register >> np.uint32(1)) ^ (_POLYNOMIAL * (register & np.uint32(1))).astype(
                np.uint32
            )
        values = np.arange(256, dtype=np.uint32)
        if back:
            # The high byte identifies the low byte that was shifted out.
            low = np.empty(256, np.uint32)
            low[register >> np.uint32(24)] = values
            every = np.concatenate([values << np.uint32(8 * byte) for byte in range(4)])
            was = low[every >> np.uint32(24)]
            unit = ((every ^ register[was]) << np.uint32(8)) | was
        else:
            unit = np.concatenate([register, *(values << np.uint32(8 * (byte - 1)) for byte in (1, 2, 3))])
    operators = np.empty((1 << _DIGIT, 1024), np.uint32)
    for byte in range(4):  # nothing is shifted by zero bytes
        operators[0, 256 * byte : 256 * (byte + 1)] = np.arange(256, dtype=np.uint32) << np.uint32(8 * byte)
    for value in range(1, 1 << _DIGIT):
        operators[value] = _applied(unit, operators[value - 1])
    return operators.reshape(-1)


@lru_cache(maxsize=_MOST_BITS // _DIGIT)
def _words(digit: int) -> memoryview:
    """The operators of a digit, to be read a word at a time."""
    return _operators(digit).data


def _applied(operator: Array, crcs: Array, first: Array | int = 0) -> Array:
    """Each CRC shifted by an operator; ``first`` is the operator's offset in the table, one or one for each CRC."""
    places = np.add(crcs.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4), _BYTES)
    places += first
    found = operator.take(places)
    result: Array = found[:, 0] ^ found[:, 1] ^ found[:, 2] ^ found[:, 3]
    return result


def shifted(crcs: Array, sizes: Array) -> Array:
    """Each CRC (uint32) moved in front of ``sizes`` bytes: XOR with the CRC of those bytes gives the CRC of both."""
    result = np.array(crcs, np.uint32)
    lengths = np.asarray(sizes, np.uint64)
    longest = int(lengths.max()) if len(lengths) else 0
    if longest >> _MOST_BITS:
        raise ValueError(f"a length of {longest} bytes: at most 2**{_MOST_BITS}")
    lengths = lengths.astype(np.int64)
    for digit in range(-(-longest.bit_length() // _DIGIT)):
        values = (lengths >> (_DIGIT * digit)) & ((1 << _DIGIT) - 1)
        result = _applied(_operators(digit), result, (values << 10).reshape(-1, 1))
    return result


def shifted_alike(crcs: Array, size: int) -> Array:
    """Each CRC (uint32) moved in front of ``size`` more bytes, or of fewer if it is negative."""
    if abs(size) >> _MOST_BITS:
        raise ValueError(f"a length of {size} bytes: at most 2**{_MOST_BITS}")
    result, left, digit = np.array(crcs, np.uint32), abs(size), 0
    while left:
        value = left & ((1 << _DIGIT) - 1)
        if value:
            result = _applied(_operators(digit, back=size < 0)[value << 10 : (value + 1) << 10], result)
        left >>= _DIGIT
        digit += 1
    return result


def shifted_one(crc: int, size: int) -> int:
    """One CRC moved in front of ``size`` bytes: as :func:`shifted`, without the costs of a column."""
    if size >> _MOST_BITS:
        raise ValueError(f"a length of {size} bytes: at most 2**{_MOST_BITS}")
    digit = 0
    while size:
        value = size & ((1 << _DIGIT) - 1)
        if value:
            table, first = _words(digit), value << 10
            crc = (
                table[first + (crc & 0xFF)]
                ^ table[first + 0x100 + (crc >> 8 & 0xFF)]
                ^ table[first + 0x200 + (crc >> 16 & 0xFF)]
                ^ table[first + 0x300 + (crc >> 24)]
            )
        size >>= _DIGIT
        digit += 1
    return crc


def joined_groups(crcs: Array, sizes: Array, starts: Array) -> tuple[Array, Array]:
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
    commas = np.where(has_comma, np.uint32(COMMA_CRC), np.uint32(0)).astype(np.uint32)
    parts = shifted(commas, sizes) ^ np.asarray(crcs, np.uint32)
    lengths = sizes + has_comma.astype(np.uint64)
    ends = np.cumsum(lengths)
    totals = np.add.reduceat(lengths, starts)
    counts = np.diff(np.append(starts, len(sizes)))
    after = np.repeat(ends[np.append(starts[1:], len(sizes)) - 1], counts) - ends
    return np.bitwise_xor.reduceat(shifted(parts, after), starts), totals


#: So many are moved one by one as quickly as a column.
_FEW: Final = 6


class TextCrc(NamedTuple):
    """The CRC32C of some names in a row, each after a comma, and how many bytes that text has."""

    crc: int
    size: int


class JoinedCrcs:
    """The CRCs of consecutive texts. Immutable."""

    __slots__ = ("_following", "_moved", "size")

    def __init__(self, moved: Array, following: Array, size: int) -> None:
        """``moved`` are the CRCs (uint32), each shifted past the number of bytes ``following`` it (int64)."""
        self._moved = moved
        self._following = following
        #: Bytes of all texts.
        self.size = size

    @classmethod
    def of(cls, crcs: Sequence[int], sizes: Sequence[int]) -> Self:
        """From the CRC and the size in bytes of each text."""
        return cls(*_moved(crcs, sizes, 0))

    @property
    def total(self) -> TextCrc:
        """The CRC and the size of all texts as one."""
        return TextCrc(int(np.bitwise_xor.reduce(self._moved)), self.size)

    def replaced(self, first: int, end: int, crcs: Sequence[int], sizes: Sequence[int]) -> JoinedCrcs:
        """The CRCs with other texts, any number of them, in place of the texts number ``first`` to ``end``."""
        start = self._following.item(first - 1) if first else self.size
        stop = self._following.item(end - 1) if end else self.size
        moved, following, begin = _moved(crcs, sizes, stop)
        grown = begin - start
        return JoinedCrcs(
            np.concatenate([shifted_alike(self._moved[:first], grown), moved, self._moved[end:]]),
            np.concatenate([self._following[:first] + grown, following, self._following[end:]]),
            self.size + grown,
        )


def _moved(crcs: Sequence[int], sizes: Sequence[int], following: int) -> tuple[Array, Array, int]:
    """Each CRC shifted past all texts after it, how many bytes these have, and how many all have with ``following``."""
    if len(crcs) <= _FEW:
        distances = [*accumulate(reversed(sizes), initial=following)]
        total = distances.pop()
        distances.reverse()
        few = [shifted_one(crc, distance) for crc, distance in zip(crcs, distances, strict=True)]
        return np.array(few, np.uint32), np.array(distances, np.int64), total
    ends = np.cumsum(np.array(sizes, np.int64))
    total = following + ends.item(-1)
    every = total - ends
    return shifted(np.array(crcs, np.uint32), every), every, total


def joined(parts: Sequence[TextCrc]) -> TextCrc:
    """The CRC and the size of consecutive texts as one."""
    if len(parts) == 1:
        return parts[0]
    return JoinedCrcs.of([part.crc for part in parts], [part.size for part in parts]).total


def without_first_comma(text: TextCrc) -> int:
    """The CRC32C for the topics hash: of names with commas between them."""
    if not text.size:
        return 0
    return text.crc ^ shifted_one(COMMA_CRC, text.size - 1)


def with_first_comma(crc: int, size: int) -> TextCrc:
    """The CRC of a text of ``size`` bytes that begins with a comma, from the CRC32C without that comma."""
    return TextCrc(crc ^ shifted_one(COMMA_CRC, size - 1), size)
