"""A file of a store, and the paths that one may have: what all kinds of stores share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from broker_core_spark.errors import StoreFailed

__all__ = ["CHUNK", "StoredFile", "checked_path"]

#: Bytes that are read at once.
CHUNK = 4 * 1024 * 1024
_PATH = re.compile(r"[a-z]+/[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as a listing of the store shows it; ``modified`` is the store's own time (UTC)."""

    path: str
    size: int
    modified: datetime


def checked_path(path: str) -> str:
    """A path of two parts with nothing in it that a file system or a bucket could take for more."""
    if not _PATH.fullmatch(path) or path.endswith("."):
        raise StoreFailed(f"{path!r:.200} is no path of a store")
    return path
