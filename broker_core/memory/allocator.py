"""Settings of the C library's allocator: the freed memory of one answer is kept, and used again for the next.

glibc learns from the largest piece that was freed how much it keeps. Listings are made in pieces of a MiB, so that by
itself it gives the memory of a large answer back to the system and takes it again, page by page, for the next. It also
gives each thread an arena of its own, from which freed memory is of no use to other threads: a chunk of a listing is
copied by one thread, and freed by another.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import Final

__all__ = ["keep_freed_memory"]

#: The parameters of mallopt in ``malloc.h``.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
#: Free bytes at the end of the heap that are kept, and pieces that are a mapping of their own, given back at once.
_KEPT: Final = 16 * 1024 * 1024
_MAPPED: Final = 4 * 1024 * 1024
#: Environment variables by which an operator may have chosen other values.
_CHOSEN: Final = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
)


def keep_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Keep freed memory, unless the environment says how much; returns whether it is kept, which only glibc can do."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or any(name in environment for name in _CHOSEN):
        return False
    chosen = ((_M_MMAP_THRESHOLD, _MAPPED), (_M_TRIM_THRESHOLD, _KEPT), (_M_ARENA_MAX, 1))
    return all(mallopt(option, value) for option, value in chosen)
