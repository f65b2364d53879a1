"""Files of a store as listings show them, and valid paths."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from broker_core_spark.errors import StoreFailed

__all__ = ["CHUNK", "StoredFile", "checked_path", "file_numbers"]

#: Bytes of one read.
CHUNK = 4 * 1024 * 1024
_PATH = re.compile(r"[a-z]+/[A-Za-z0-9_.-]{1,128}")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a listing of the store. ``modified`` is the store's time (UTC)."""

    path: str
    size: int
    modified: datetime


def file_numbers(files: Iterable[StoredFile], before: str, after: str) -> list[int]:
    """The numbers of files whose paths are a number between ``before`` and ``after``, in order.

    A number has 12 to 18 digits, with leading zeros up to 12. Names with others do not count.
    """
    name = re.compile(f"{re.escape(before)}([0-9]{{12,18}}){re.escape(after)}")
    found = (match[1] for file in files if (match := name.fullmatch(file.path)))
    return sorted(int(digits) for digits in found if digits == f"{int(digits):012}")


def checked_path(path: str) -> str:
    """The path, if it is a folder and a plain name. Raises :exc:`StoreFailed` for anything else."""
    if not _PATH.fullmatch(path) or path.endswith("."):
        raise StoreFailed(f"{path!r:.200} is no path of a store")
    return path
