"""Answers that a listing remembers: bounded by bytes, the least used ones make room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["Memo"]

T = TypeVar("T")

_ENTRY = 512  # bytes of an entry beside its key and its value


class Memo(Generic[T]):
    """Values by key, of at most ``limit`` bytes together; for any number of threads."""

    __slots__ = ("_entries", "_lock", "_size", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes that are in use, as they are counted against the limit."""
        return self._size

    def get(self, key: str) -> T | None:
        """The value under ``key``, if it is still there."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: str, value: T, size: int) -> None:
        """Keep ``value`` of ``size`` bytes under ``key``; one that is there stays, one too large is not kept."""
        size += 4 * len(key) + _ENTRY
        if size > self.limit:
            return
        with self._lock:
            if key in self._entries:
                return
            self._entries[key] = (value, size)
            self._size += size
            while self._size > self.limit:
                _, (_, freed) = self._entries.popitem(last=False)
                self._size -= freed

    def close(self) -> None:
        """Forget all, and keep nothing from now on."""
        with self._lock:
            self._entries.clear()
            self._size = self.limit = 0
