"""The size of a listing's chunks: a change copies a whole chunk, and a listing has a few objects for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ChunkSize", "chunk_size"]


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """Bytes of encoded names: of a new chunk (``made``), above which it is cut (``most``) or below joined (``least``).

    ``rows`` are the most topics. With what is derived from its names, a chunk takes up to four times the bytes.
    """

    made: int = 1024 * 1024
    most: int = 2 * 1024 * 1024
    least: int = 256 * 1024
    rows: int = 64 * 1024


_USED: Final = ChunkSize()


def chunk_size() -> ChunkSize:
    """The sizes in use."""
    return _USED
