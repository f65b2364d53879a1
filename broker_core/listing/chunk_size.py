"""How large chunks of a listing are made: a change copies all of one, and a listing has a few objects for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ChunkSize", "chunk_size"]


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """Bytes of encoded names: as a chunk is ``made``, before it is cut (``most``), and when it is joined (``least``).

    ``rows`` are the most topics. With what is derived from the names a chunk has up to four times the bytes.
    """

    made: int = 1024 * 1024
    most: int = 2 * 1024 * 1024
    least: int = 256 * 1024
    rows: int = 64 * 1024


_USED: Final = ChunkSize()


def chunk_size() -> ChunkSize:
    """The size that chunks are made by."""
    return _USED
