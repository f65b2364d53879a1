"""The names that a set of ACLs is about: literal names, prefixes, or all names; for one name, and for columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.kafka.acls.bindings import AclBinding, PatternType
from broker_core.names import Prefixes

__all__ = ["WILDCARD", "NamePatterns", "SortedNames"]

#: The literal name that stands for all names. A prefix of this text is an ordinary prefix.
WILDCARD: Final = "*"
#: From so many literal names on, Arrow searches for all at once.
_MANY: Final = 24


class SortedNames:
    """A column of distinct names, sorted by their bytes, for binary searches. It is not copied."""

    __slots__ = ("_data", "_offsets", "column", "first", "last", "size")

    def __init__(self, column: pa.LargeBinaryArray) -> None:
        self.column = column
        self.size = len(column)
        _, offsets, data = column.buffers()
        self._offsets = (
            np.frombuffer(offsets, np.int64, self.size + 1, 8 * column.offset) if self.size else ()
        )
        self._data = memoryview(data if data is not None else b"")
        self.first = self.name(0) if self.size else b""
        self.last = self.name(self.size - 1) if self.size else b""

    def name(self, row: int) -> bytes:
        return bytes(self._data[self._offsets[row] : self._offsets[row + 1]])

    def place(self, name: bytes) -> int:
        """The first row whose name is not less."""
        return bisect_left(range(self.size), name, key=self.name)

    def end_of_prefix(self, prefix: bytes, start: int) -> int:
        """The row after the names with this prefix, which begin at ``start``."""
        length = len(prefix)
        return bisect_right(range(self.size), prefix, start, key=lambda row: self.name(row)[:length])


class NamePatterns:
    """The names and prefixes of some bindings, of one type of resource."""

    __slots__ = ("_literals", "_names", "_prefixes", "everything")

    def __init__(self, bindings: Iterable[AclBinding]) -> None:
        literals: set[str] = set()
        prefixes: set[str] = set()
        for binding in bindings:
            found = prefixes if binding.pattern is PatternType.PREFIXED else literals
            found.add(binding.name)
        #: Whether the bindings are about every name.
        self.everything = WILDCARD in literals or "" in prefixes
        self._names = frozenset(name.encode() for name in literals)
        self._literals = sorted(self._names)
        self._prefixes = Prefixes(prefixes)

    def __bool__(self) -> bool:
        return bool(self._literals or self._prefixes)

    def matches(self, name: bytes) -> bool:
        return self.everything or name in self._names or self._prefixes.cover(name)

    def mark(self, names: SortedNames, marks: npt.NDArray[np.bool_], value: bool) -> None:
        """Put ``value`` at the rows whose names match."""
        if self.everything:
            marks[:] = value
            return
        if not names.size or not self:
            return
        for prefix in self._prefixes.between(names.first, names.last):
            start = names.place(prefix)
            marks[start : names.end_of_prefix(prefix, start)] = value
        literals = self._literals
        near = literals[bisect_left(literals, names.first) : bisect_right(literals, names.last)]
        if len(near) >= _MANY:
            found = pc.is_in(names.column, value_set=pa.array(near, pa.large_binary()))
            marks[found.to_numpy(zero_copy_only=False)] = value
            return
        for name in near:
            row = names.place(name)
            if row < names.size and names.name(row) == name:
                marks[row] = value
