"""The bytes of a segment file, for its writer and its reader. The reference specifies them.

All numbers are little-endian. A segment is a header, the sections of its runs, a directory and a trailer. Positions
follow from the sizes, so no parts overlap and no byte is unread.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = [
    "DIRECTORY_LIMIT",
    "ENTRY",
    "FORMAT_VERSION",
    "HEADER",
    "HEADER_MAGIC",
    "KIND_RANGE",
    "KIND_ROWS",
    "MOST_FIELD_BYTES",
    "TRAILER",
    "TRAILER_MAGIC",
    "RunLayout",
    "padding",
]

FORMAT_VERSION: Final = 1
#: Magic (8 bytes), version (u32), zero (u32).
HEADER: Final = struct.Struct("<8sII")
HEADER_MAGIC: Final = b"BCSEGMNT"
#: Position of the directory (u64), its bytes (u64), magic (8 bytes).
TRAILER: Final = struct.Struct("<QQ8s")
TRAILER_MAGIC: Final = b"TNMGESCB"
#: Bytes of the largest directory that is read.
DIRECTORY_LIMIT: Final = 256 * 1024 * 1024
#: Offsets of encoded names have 32 bits.
MOST_FIELD_BYTES: Final = 2**32 - 1

KIND_RANGE: Final = 0
KIND_ROWS: Final = 1
#: The postings of one selector in one run, 48 bytes. ``first`` is the first row of a range, or the position of the
#: first of its row numbers.
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
    """Zero bytes behind a section of ``size`` bytes, up to a multiple of 8."""
    return -size % 8


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The sections of a run: offsets, encoded names, entries and row numbers, each padded to 8 bytes."""

    start: int
    names: int
    fields_size: int
    entries: int
    rows: int

    @property
    def offsets_size(self) -> int:
        return 4 * (self.names + 1)

    @property
    def fields_at(self) -> int:
        return self.start + self.offsets_size + padding(self.offsets_size)

    @property
    def entries_at(self) -> int:
        return self.fields_at + self.fields_size + padding(self.fields_size)

    @property
    def entries_size(self) -> int:
        return ENTRY.itemsize * self.entries

    @property
    def rows_at(self) -> int:
        return self.entries_at + self.entries_size

    @property
    def rows_size(self) -> int:
        return 4 * self.rows

    @property
    def end(self) -> int:
        return self.rows_at + self.rows_size + padding(self.rows_size)

    def sections(self) -> tuple[tuple[int, int], ...]:
        """(position, bytes) of each section, without padding."""
        return (
            (self.start, self.offsets_size),
            (self.fields_at, self.fields_size),
            (self.entries_at, self.entries_size),
            (self.rows_at, self.rows_size),
        )

    def record(self) -> dict[str, Any]:
        """The run's record in the directory."""
        return {
            "names": self.names,
            "fields_size": self.fields_size,
            "entries": self.entries,
            "rows": self.rows,
        }
