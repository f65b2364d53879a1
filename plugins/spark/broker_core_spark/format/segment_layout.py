"""The bytes of names files and postings files, for their writers and readers. The reference specifies them.

All numbers are little-endian. A file is a header, the sections of its runs, a directory and a trailer. Positions
follow from the sizes, so no parts overlap and no byte is unread.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

__all__ = [
    "DIRECTORY_LIMIT",
    "ENTRY",
    "FORMAT_VERSION",
    "HEADER",
    "KIND_BITS",
    "KIND_RANGE",
    "KIND_ROWS",
    "MOST_FIELD_BYTES",
    "NAMES",
    "POSTINGS",
    "TRAILER",
    "FileKind",
    "RunPlace",
    "bit_words",
    "padding",
]

FORMAT_VERSION: Final = 2
#: Magic (8 bytes), version (u32), zero (u32).
HEADER: Final = struct.Struct("<8sII")
#: Position of the directory (u64), its bytes (u64), magic (8 bytes).
TRAILER: Final = struct.Struct("<QQ8s")
#: Bytes of the largest directory that is read.
DIRECTORY_LIMIT: Final = 256 * 1024 * 1024
#: Offsets of encoded names have 32 bits.
MOST_FIELD_BYTES: Final = 2**32 - 1

KIND_RANGE: Final = 0
KIND_ROWS: Final = 1
KIND_BITS: Final = 2
#: The postings of one selector in one run, 48 bytes. ``first`` is the first row of a range, or the position of the
#: first of its words: row numbers, or a bit for each name of the run.
ENTRY: Final = np.dtype(
    [
        ("key", "u1", (16,)),
        ("count", "<u4"),
        ("crc", "<u4"),
        ("joined", "<u8"),
        ("first", "<u8"),
        ("kind", "<u4"),
        ("zero", "<u4"),
    ]
)


def padding(size: int) -> int:
    """Zero bytes after a section of ``size`` bytes, up to a multiple of 8."""
    return -size % 8


_Size = TypeVar("_Size", int, "np.ndarray[Any, Any]")


def bit_words(names: _Size) -> _Size:
    """Words of 32 bits that have a bit for each of so many names, or of each of so many sizes."""
    return -(-names // 32)


class RunPlace(NamedTuple):
    """The place of a run of ``names`` names in a file: (position, bytes) of its two sections, without their padding."""

    names: int
    sections: tuple[tuple[int, int], tuple[int, int]]
    end: int


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: its first and last bytes, its folder and suffix in a store, and its name in errors.

    ``sizes`` are the keys of a run's sizes in the directory, the number of names first, and ``section_bytes`` gives the
    bytes of its two sections for them. ``digests`` are the further keys of a run.
    """

    head: bytes
    tail: bytes
    folder: str
    suffix: str
    title: str
    sizes: tuple[str, ...]
    section_bytes: Callable[..., tuple[int, int]]
    digests: tuple[str, ...] = ()

    def place(self, start: int, *sizes: int) -> RunPlace:
        """The place of a run that begins at ``start``. Each section is padded to 8 bytes."""
        first, second = self.section_bytes(*sizes)
        at = start + first + padding(first)
        return RunPlace(sizes[0], ((start, first), (at, second)), at + second + padding(second))


#: Sections: offsets and encoded names.
NAMES: Final = FileKind(
    b"BCSEGMNT",
    b"TNMGESCB",
    "segments",
    "seg",
    "segment",
    ("names", "fields_size"),
    lambda names, fields_size: (4 * (names + 1), fields_size),
)
#: Sections: entries and words.
POSTINGS: Final = FileKind(
    b"BCPOSTNG",
    b"GNTSOPCB",
    "postings",
    "post",
    "postings file",
    ("names", "entries", "words"),
    lambda _names, entries, words: (ENTRY.itemsize * entries, 4 * words),
    ("selectors",),
)
