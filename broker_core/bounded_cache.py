"""Values by key in bounded memory: the least used ones make room. The one such cache of the broker and of its plugins.

What is bounded is bytes, as whoever puts a value counts them; each entry is counted with what it takes besides.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

__all__ = ["BoundedCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Bytes that an entry takes besides its key and its value, about.
_ENTRY: Final = 512


class BoundedCache(Generic[K, V]):
    """Values by key, of at most ``limit`` bytes together; for any number of threads.

    ``on_drop(key, value)`` is called for each value that leaves: that made room, was replaced, taken out, or was there
    at the end. It is called without the cache's lock, in the thread whose call it was.
    """

    __slots__ = ("_entries", "_lock", "_on_drop", "_size", "limit")

    def __init__(self, limit: int, *, on_drop: Callable[[K, V], None] | None = None) -> None:
        self.limit = limit
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._size = 0
        self._on_drop = on_drop
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    @property
    def nbytes(self) -> int:
        """Bytes that are in use, as they are counted against the limit."""
        return self._size

    def get(self, key: K) -> V | None:
        """The value under ``key``, which is used by this; ``None`` where there is none."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(self, key: K, value: V, size: int = 0) -> bool:
        """Keep ``value`` under ``key`` in place of an older one; ``size`` are the bytes of both.

        False where it is larger than all that may be kept: then nothing is kept under the key.
        """
        size += _ENTRY
        dropped: list[tuple[K, V]] = []
        with self._lock:
            self._take(key, dropped)
            fits = size <= self.limit
            if fits:
                self._entries[key] = (value, size)
                self._size += size
                while self._size > self.limit:
                    self._take(next(iter(self._entries)), dropped)
        self._tell(dropped)
        return fits

    def put_first(self, key: K, value: V, size: int = 0) -> V:
        """Keep ``value`` as :meth:`put` does, unless there is one under ``key``; gives the one that stays."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                return found[0]
        self.put(key, value, size)
        return value

    def pop(self, key: K) -> V | None:
        """Take the value under ``key`` out; ``None`` where there is none."""
        dropped: list[tuple[K, V]] = []
        with self._lock:
            self._take(key, dropped)
        self._tell(dropped)
        return dropped[0][1] if dropped else None

    def make_room(self, size: int) -> None:
        """Drop the least used values until so many bytes are free, or none is left."""
        dropped: list[tuple[K, V]] = []
        with self._lock:
            while self._entries and self._size + size > self.limit:
                self._take(next(iter(self._entries)), dropped)
        self._tell(dropped)

    def keys(self) -> list[K]:
        """All keys at this moment, the least used first."""
        with self._lock:
            return list(self._entries)

    def clear(self) -> None:
        """Forget all."""
        dropped: list[tuple[K, V]] = []
        with self._lock:
            for key in list(self._entries):
                self._take(key, dropped)
        self._tell(dropped)

    def close(self) -> None:
        """Forget all, and keep nothing from now on."""
        self.limit = 0
        self.clear()

    def _take(self, key: K, dropped: list[tuple[K, V]]) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= entry[1]
            dropped.append((key, entry[0]))

    def _tell(self, dropped: list[tuple[K, V]]) -> None:
        if self._on_drop is not None:
            for key, value in dropped:
                self._on_drop(key, value)
