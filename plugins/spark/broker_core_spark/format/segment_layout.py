"""The bytes of names files and postings files, for their writers and readers. The reference specifies them.

All numbers are little-endian. A file is a header, the sections of its runs, a directory and a trailer. Positions
follow from the sizes, so no parts overlap and no byte is unread.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, TypeVar

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
    "NamesLayout",
    "PostingsLayout",
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


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file: its first and last bytes, its folder and suffix in a store, and its name in errors."""

    head: bytes
    tail: bytes
    folder: str
    suffix: str
    title: str


NAMES: Final = FileKind(b"BCSEGMNT", b"TNMGESCB", "segments", "seg", "segment")
POSTINGS: Final = FileKind(b"BCPOSTNG", b"GNTSOPCB", "postings", "post", "postings file")


def padding(size: int) -> int:
    """Zero bytes after a section of ``size`` bytes, up to a multiple of 8."""
    return -size % 8


_Size = TypeVar("_Size", int, "np.ndarray[Any, Any]")


def bit_words(names: _Size) -> _Size:
    """Words of 32 bits that have a bit for each of so many names, or of each of so many sizes."""
    return -(-names // 32)


@dataclass(frozen=True, slots=True)
class NamesLayout:
    """The sections of a run in a names file: offsets and encoded names, each padded to 8 bytes."""

    start: int
    names: int
    fields_size: int

    @property
    def offsets_size(self) -> int:
        return 4 * (self.names + 1)

    @property
    def fields_at(self) -> int:
        return self.start + self.offsets_size + padding(self.offsets_size)

    @property
    def end(self) -> int:
        return self.fields_at + self.fields_size + padding(self.fields_size)

    def sections(self) -> tuple[tuple[int, int], ...]:
        """(position, bytes) of each section, without padding."""
        return (self.start, self.offsets_size), (self.fields_at, self.fields_size)

    def record(self) -> dict[str, Any]:
        """The run's sizes in the directory."""
        return {"names": self.names, "fields_size": self.fields_size}


@dataclass(frozen=True, slots=True)
class PostingsLayout:
    """The sections of a run in a postings file: entries and words, each padded to 8 bytes."""

    start: int
    names: int
    entries: int
    words: int

    @property
    def entries_size(self) -> int:
        return ENTRY.itemsize * self.entries

    @property
    def words_at(self) -> int:
        return self.start + self.entries_size

    @property
    def words_size(self) -> int:
        return 4 * self.words

    @property
    def end(self) -> int:
        return self.words_at + self.words_size + padding(self.words_size)

    def sections(self) -> tuple[tuple[int, int], ...]:
        """(position, bytes) of each section, without padding."""
        return (self.start, self.entries_size), (self.words_at, self.words_size)

    def record(self) -> dict[str, Any]:
        """The run's sizes in the directory."""
        return {"names": self.names, "entries": self.entries, "words": self.words}
