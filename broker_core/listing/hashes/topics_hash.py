"""The hash of a listing, as Pulsar's ``TopicList.calculateHash`` computes it.

docs/reference/pulsar-behaviour.md#the-topics-hash

Names sorted by Java's ``String`` order (UTF-16 code units), joined by commas, CRC32C over the UTF-8 bytes, shown as
the four bytes in little-endian order in lower-case hex: ``00000000`` for no names. Duplicates count; commas in names
are not escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import google_crc32c
import numpy as np

__all__ = ["EMPTY_HASH", "crc_text", "crcs_of_parts", "extend_crc", "topics_hash", "utf16_key"]

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


def crcs_of_parts(
    buffer: memoryview, starts: np.ndarray[Any, Any], stops: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
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
