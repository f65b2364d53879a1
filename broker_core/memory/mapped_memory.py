"""Checks whether memory is a file that is mapped read-only: such memory cannot be written through its map.

An Arrow buffer's own ``is_mutable`` is not enough: a read-only view of a ``bytearray`` can still be written through the
``bytearray``. So the kernel is asked (``/proc/self/maps``). Without ``/proc``, no memory counts as mapped.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Final

import pyarrow as pa

__all__ = ["Map", "map_of"]

_MAPS: Final = Path("/proc/self/maps")
_DELETED: Final = " (deleted)"
_REMEMBERED: Final = 64


class Map:
    """A file that is mapped read-only."""

    __slots__ = ("has_name", "path")

    def __init__(self, path: str) -> None:
        self.path = path.removesuffix(_DELETED)
        #: Whether others can still open the file, and make it shorter.
        self.has_name = not path.endswith(_DELETED)


#: Asking takes up to a millisecond if much is mapped, and many listings are of one map.
_known: Final[dict[tuple[int, int], tuple[weakref.ref[pa.Buffer], Map]]] = {}


def map_of(buffer: pa.Buffer) -> Map | None:
    """The file that the whole buffer maps read-only; ``None`` if it maps none."""
    low, high = buffer.address, buffer.address + buffer.size
    if low == high:
        return None
    known = _known.get((low, high))
    # While the buffer is referenced, its memory stays mapped.
    if known is not None and known[0]() is not None:
        return known[1]
    found = _found(low, high)
    if found is not None:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        _known[low, high] = weakref.ref(buffer), found
    return found


def _found(low: int, high: int) -> Map | None:
    try:
        with _MAPS.open(encoding="utf-8", errors="replace") as maps:
            # By ascending addresses: start-end, permissions, offset, device, inode, path.
            for line in maps:
                start, _, rest = line.partition("-")
                end, permissions, _, _, inode, *path = rest.split(None, 5)
                if int(end, 16) <= low:
                    continue
                if int(start, 16) > low or int(end, 16) < high or "w" in permissions or inode == "0":
                    return None
                return Map(path[0].rstrip("\n") if path else "")
    except OSError:
        return None
    return None
