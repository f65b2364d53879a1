"""Values that belong to objects by identity, until the object is freed.

An object may be freed in any thread, in the middle of any statement. So its end is only noted; its value is given back
when the owner of the table looks the next time.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["Owners"]

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
