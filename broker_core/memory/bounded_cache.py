"""The least-recently-used cache of the broker and of its plugins: values by key, bounded by bytes.

The caller of :meth:`BoundedCache.put` says how many bytes a value has; the cache adds the overhead of an entry.

Values may belong to objects by identity, until the object is freed (:class:`Owners`). An object may be freed in any
thread, in the middle of any statement. So its end is only noted; its value is given back when the owner of the table
looks the next time.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

__all__ = ["BoundedCache", "CacheState", "Caches", "Owners"]


P = TypeVar("P")


class _Numbered(weakref.ref[object]):
    """A reference that knows the ``id()`` of its object after the object's end."""

    __slots__ = ("number",)

    number: int


class Owners(Generic[P]):
    """One value for each object that is alive. Used by one thread at a time; objects may be freed in any thread.

    ``on_end`` is called when an object has ended, in whatever thread: it must do no more than make a note of it.
    """

    __slots__ = ("_ended", "_held", "_note_end", "_on_end")

    def __init__(self, on_end: Callable[[], None] | None = None) -> None:
        self._held: dict[int, tuple[_Numbered, P]] = {}
        self._ended: list[int] = []  # an empty deque takes 600 bytes, and small caches are many
        self._on_end = on_end
        self._note_end = self._has_ended  # one bound method for all

    def get(self, owner: object) -> P | None:
        """The value of an object."""
        reference, thing = self._held.get(id(owner), (None, None))
        return thing if reference is not None and reference() is owner else None

    def put(self, owner: object, thing: P) -> P | None:
        """Set the value of an object; returns its former value, or that of an ended object with its ``id()``."""
        number = id(owner)
        old = self._held.pop(number, None)
        reference = _Numbered(owner, self._note_end)
        reference.number = number
        self._held[number] = reference, thing
        return None if old is None else old[1]

    def ended(self) -> Iterator[P]:
        """Take out the value of each object that has ended since the last call."""
        while self._ended:
            number = self._ended.pop()
            reference, thing = self._held.get(number, (None, None))
            # A new object may have the identity of a freed one, and a value of its own.
            if reference is None or thing is None or reference() is not None:
                continue
            del self._held[number]
            yield thing

    def _has_ended(self, reference: _Numbered) -> None:
        self._ended.append(reference.number)
        if self._on_end is not None:
            self._on_end()


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

#: Bytes that an entry takes besides its key and its value, about.
_ENTRY: Final = 512


class BoundedCache(Generic[K, V]):
    """Values by key, of at most ``limit`` bytes together; for any number of threads.

    A value may have an owner, or parts that several values share (:meth:`put`). Their bytes count until the owner or
    the part is freed, even after the value was evicted: a slow client may still hold it.

    ``on_drop(key, value)`` is called for each value that leaves: when it makes room, is replaced or taken out, and at
    the end. It is called without the cache's lock, in the thread that made it leave.
    """

    __slots__ = ("_entries", "_lock", "_on_drop", "_owners", "_size", "limit")

    def __init__(self, limit: int, *, on_drop: Callable[[K, V], None] | None = None) -> None:
        self.limit = limit
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._size = 0
        self._on_drop = on_drop
        self._owners: Owners[int] | None = None  # made with the first of them
        # A value may end in any thread, also in the midst of a method, and ask for another.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    @property
    def nbytes(self) -> int:
        """Bytes that count against the limit: kept, owned or claimed."""
        with self._lock:
            self._settle()
            return self._size

    def get(self, key: K) -> V | None:
        """The value under ``key``, now the most recently used; ``None`` if there is none."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def put(
        self,
        key: K,
        value: V,
        size: int = 0,
        *,
        owner: object | None = None,
        parts: Collection[tuple[object, int]] = (),
    ) -> bool:
        """Keep ``value`` under ``key`` in place of an older one; ``size`` are the bytes of both.

        They count while the value is kept, or, if there is an ``owner``, as long as anybody has the owner. ``parts``
        are further objects that the value has, each with its bytes: they count once, however many values have the
        object, and as long as anybody has it. False if all of it is more than may be kept: then nothing is kept under
        the key.
        """
        size += _ENTRY
        dropped: list[tuple[K, V]] = []
        with self._lock:
            if key in self._entries:
                self._take(key, dropped)
            fits = size + sum(part_size for _, part_size in parts) <= self.limit
            if fits:
                if owner is not None:
                    size = self._own(owner, size)
                for part, part_size in parts:
                    self._own(part, part_size)
                self._entries[key] = (value, size)
                self._size += size
                if self._size > self.limit:
                    self._make_room(0, dropped)
        if dropped:
            self._notify(dropped)
        return fits

    def put_first(self, key: K, value: V, size: int = 0) -> V:
        """Keep ``value`` as :meth:`put` does, unless ``key`` has a value already; returns the value that stays."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
                return found[0]
            self.put(key, value, size)
        return value

    def pop(self, key: K) -> V | None:
        """Take the value under ``key`` out; ``None`` if there is none."""
        dropped: list[tuple[K, V]] = []
        with self._lock:
            entry = self._entries.get(key)
            self._take(key, dropped)
        self._notify(dropped)
        return None if entry is None else entry[0]

    def make_room(self, size: int) -> bool:
        """Drop the least recently used values until so many bytes are free; False if that is impossible."""
        dropped: list[tuple[K, V]] = []
        with self._lock:
            has_room = self._make_room(size, dropped)
        self._notify(dropped)
        return has_room

    def claim(self, size: int) -> bool:
        """Set bytes apart for a value that is about to be made, at the cost of the least used ones.

        False if they do not fit. :meth:`give_back` them once the value is kept, or was not made.
        """
        dropped: list[tuple[K, V]] = []
        with self._lock:
            has_room = size <= self.limit and self._make_room(size, dropped)
            if has_room:
                self._size += size
        self._notify(dropped)
        return has_room

    def give_back(self, size: int) -> None:
        """Undo a :meth:`claim`."""
        with self._lock:
            self._size -= size

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
        self._notify(dropped)

    def close(self) -> None:
        """Forget all, and keep nothing from now on."""
        self.limit = 0
        self.clear()

    def _take(self, key: K, dropped: list[tuple[K, V]]) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= entry[1]
            if self._on_drop is not None:
                dropped.append((key, entry[0]))

    def _make_room(self, size: int, dropped: list[tuple[K, V]]) -> bool:
        self._settle()
        while self._entries and self._size + size > self.limit:
            self._take(next(iter(self._entries)), dropped)
            self._settle()
        return self._size + size <= self.limit

    def _own(self, owner: object, size: int) -> int:
        """Count ``size`` until ``owner`` is freed; returns the overhead of such an entry."""
        if self._owners is None:
            self._owners = Owners()
        if self._owners.get(owner) is not None:
            return _ENTRY
        self._size += size - (self._owners.put(owner, size) or 0)
        return 0

    def _settle(self) -> None:
        if self._owners is not None:
            for size in self._owners.ended():
                self._size -= size

    def _notify(self, dropped: list[tuple[K, V]]) -> None:
        if self._on_drop is not None:
            for key, value in dropped:
                self._on_drop(key, value)


@dataclass(frozen=True, slots=True)
class CacheState:
    """The number and the bytes of kept values, ``limit`` bytes at the most; 0 is no bound. ``size`` counts its bytes,
    in any thread.
    """

    entries: int
    size: Callable[[], int]
    limit: int


class Caches:
    """The caches of a broker, each named by the part that has it; read on its event loop."""

    def __init__(self) -> None:
        self._read: dict[str, Callable[[], CacheState]] = {}

    def show(self, name: str, read: Callable[[], CacheState]) -> None:
        """Show a cache under this name, in the place of a former one."""
        self._read[name] = read

    def show_bounded(self, name: str, cache: BoundedCache[Any, Any]) -> None:
        """Show a cache that is bounded by itself."""
        self.show(name, lambda: CacheState(len(cache), lambda: cache.nbytes, cache.limit))

    def states(self) -> dict[str, CacheState]:
        """The state of each cache now, by name."""
        return {name: read() for name, read in self._read.items()}
