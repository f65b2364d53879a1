"""The answer to a listing as programs use it: a sequence of names over an Arrow column, read in blocks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final, overload

from broker_core.counted import counted

__all__ = ["ListingWarning", "TopicListing"]

_BLOCK: Final = 4096  # names that are Python strings at a time


class ListingWarning(UserWarning):
    """The warning of a question that selects otherwise than it seems, such as a pattern without its namespace."""


class TopicListing(Sequence[str]):
    """The full names of the listed topics, in the server's order; immutable.

    A listing of 1,000,000 topics takes the bytes of its names: a name becomes a Python string when it is looked at.
    ``in`` is a binary search if the names are sorted, as this server sends them, else a pass over the column.
    """

    def __init__(
        self,
        names: Any,
        *,
        filtered: bool = True,
        changed: bool = True,
        topics_hash: str | None = None,
        warnings: tuple[str, ...] = (),
    ) -> None:
        """``names`` is a list of a few names, or a ``pyarrow.LargeStringArray``."""
        self._given: Final = names
        self._filtered: Final = filtered
        self._changed: Final = changed
        self._topics_hash: Final = topics_hash
        self._warnings: Final = warnings

    @property
    def filtered(self) -> bool:
        """Whether the server applied the pattern; else the client did. The names match the pattern either way."""
        return self._filtered

    @property
    def changed(self) -> bool:
        """``False``: the topics still have the question's hash, and this listing has no names: look at this first."""
        return self._changed

    @property
    def topics_hash(self) -> str | None:
        """The hash to send with the next question: the server's, or computed if it sent none. ``None`` for a slice."""
        return self._topics_hash

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the question: a pattern that can match no topic of the namespace, or properties that nothing
        selects by (from a server of this project). Each was a :exc:`ListingWarning` too.
        """
        return self._warnings

    @property
    def names(self) -> Any:
        """All names as a ``pyarrow.LargeStringArray``."""
        return self._column

    @cached_property
    def _column(self) -> Any:
        import pyarrow as pa

        return pa.array(self._given, pa.large_string()) if isinstance(self._given, list) else self._given

    def __len__(self) -> int:
        return len(self._given)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> TopicListing: ...
    def __getitem__(self, index: int | slice) -> str | TopicListing:
        if not isinstance(index, slice):
            found = self._given[index]
            name: str = found if isinstance(found, str) else found.as_py()
            return name
        return TopicListing(self._given[index], filtered=self.filtered, changed=self.changed)

    def __iter__(self) -> Iterator[str]:
        if isinstance(self._given, list):
            yield from self._given
            return
        for start in range(0, len(self._given), _BLOCK):
            yield from self._given[start : start + _BLOCK].to_pylist()

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        if isinstance(self._given, list):
            return name in self._given
        try:
            key = name.encode()
        except UnicodeEncodeError:  # no name that is sent
            return False
        if self._is_sorted:
            place = bisect_left(self._given, key, key=_bytes_of)
            return place < len(self._given) and _bytes_of(self._given[place]) == key
        import pyarrow.compute as pc

        return bool(pc.index(self._given, name).as_py() >= 0)

    @cached_property
    def _is_sorted(self) -> bool:
        """Whether the names ascend by their UTF-8 bytes."""
        import pyarrow.compute as pc

        return bool(pc.all(pc.less_equal(self._given[:-1], self._given[1:]), min_count=0).as_py())

    def __eq__(self, other: object) -> bool:
        """Whether the listing has the same names in the same order as another listing, a list or a tuple."""
        if isinstance(other, TopicListing):
            return len(self) == len(other) and bool(self.names.equals(other.names))
        if isinstance(other, list | tuple):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        if not self.changed:
            return f"<TopicListing: unchanged, hash {self.topics_hash}>"
        return f"<TopicListing: {counted(len(self), 'topic')}, hash {self.topics_hash}>"


def _bytes_of(scalar: Any) -> bytes:
    data: bytes = scalar.as_buffer().to_pybytes()
    return data
