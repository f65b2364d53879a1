"""Full names of topics as a sequence over an Arrow column: a Python string is made only of a name that is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Self, overload

import pyarrow as pa

__all__ = ["NO_NAMES", "TopicNames"]

#: Names that are made at once by an iteration.
_BLOCK: Final = 4096
#: An empty column.
NO_NAMES: Final = pa.array([], pa.large_string())


class TopicNames(Sequence[str]):
    """An immutable sequence of the names in ``column`` (``pyarrow.LargeStringArray``); slices share its memory."""

    __slots__ = ("column",)

    def __init__(self, column: Any = NO_NAMES) -> None:
        self.column: Final = column

    def __len__(self) -> int:
        return len(self.column)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> str | Self:
        if isinstance(index, slice):
            return type(self)(self.column[index])
        try:
            name: str = self.column[index].as_py()
        except IndexError:
            raise IndexError(f"no name {index} of {len(self)}") from None
        return name

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            yield from self.column.slice(start, _BLOCK).to_pylist()

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        import pyarrow.compute as pc

        return bool(pc.index(self.column, name).as_py() >= 0)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TopicNames):
            return bool(self.column.equals(other.column))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a column of a million names is no key

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"TopicNames({shown}{f', ... {len(self)} in all' if len(self) > 3 else ''})"
