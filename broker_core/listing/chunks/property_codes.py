"""The values of one property in the rows of a chunk, as codes, by which topics are selected.

Codes are positions in a column of the values that the chunk's topics have; -1 if a topic has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.counted import counted
from broker_core.names import Array

__all__ = ["NO_VALUE", "PropertyCodes"]

NO_VALUE: Final = -1
#: Unused values are left in the column until they are so many.
_MOST_UNUSED: Final = 1024
#: So few rows are handled one by one: a kernel's call costs more.
_FEW: Final = 4
_TEXT: Final = pa.large_string()


class PropertyCodes:
    """One property of the rows of a chunk. Immutable. ``codes`` are int32, ``values`` are distinct."""

    __slots__ = ("codes", "values")

    def __init__(self, codes: Array, values: pa.LargeStringArray) -> None:
        self.codes = codes
        self.values = values

    @classmethod
    def of(cls, values: pa.LargeStringArray) -> PropertyCodes:
        """The codes of the value of each row, null if it has none."""
        if len(values) <= _FEW:
            texts = values.to_pylist()
            places: dict[str | None, int] = {None: NO_VALUE}
            for text in texts:
                places.setdefault(text, len(places) - 1)
            column = pa.array([text for text in places if text is not None], _TEXT)
            return cls(np.array([places[text] for text in texts], np.int32), column)
        encoded = values.dictionary_encode()
        codes = encoded.indices.fill_null(NO_VALUE).to_numpy(zero_copy_only=False)
        return cls(codes.astype(np.int32, copy=False), encoded.dictionary)

    @classmethod
    def none(cls, size: int) -> PropertyCodes:
        """The codes of rows that have no value."""
        return cls(np.full(size, NO_VALUE, np.int32), pa.array([], _TEXT))

    @property
    def nbytes(self) -> int:
        """Bytes of codes and values."""
        return int(self.codes.nbytes + self.values.nbytes)

    def code(self, value: str) -> int:
        """The code of a value, -1 if no row has it."""
        found: int = pc.index(self.values, pa.scalar(value, _TEXT)).as_py()
        return found

    def rows_with(self, value: str) -> Array | None:
        """Whether each row has a value, one bool a row; ``None`` if none has."""
        code = self.code(value)
        return None if code == NO_VALUE else self.codes == np.int32(code)

    def column(self) -> pa.LargeStringArray:
        """The value of each row, or null."""
        return self.values.take(pa.array(self.codes, mask=self.codes == NO_VALUE))

    def values_at(self, rows: Sequence[int]) -> list[str | None]:
        """The values of some rows."""
        values: list[str | None] = self.take(np.asarray(rows, np.int64)).column().to_pylist()
        return values

    def take(self, rows: Array) -> PropertyCodes:
        """The codes of some rows."""
        return self._tidy(self.codes[rows], self.values)

    def stretch(self, low: int, high: int) -> PropertyCodes:
        """The codes of the rows from ``low`` to ``high``."""
        return self._tidy(self.codes[low:high].copy(), self.values)

    def with_values(self, rows: Sequence[int], values: Sequence[str | None]) -> PropertyCodes:
        """The codes with other values of some rows."""
        codes = self.codes.copy()
        known, column = self._codes_of(values)
        for row, value in zip(rows, values, strict=True):
            codes[row] = NO_VALUE if value is None else known[value]
        return self._tidy(codes, column)

    def spliced(self, gone: Array, put: Array, fresh: PropertyCodes) -> PropertyCodes:
        """The codes without the rows ``gone``, with the rows of ``fresh`` before the rows ``put``; both ascend."""
        column, own = self.values, fresh.codes
        if (own != NO_VALUE).any():
            texts = fresh.values.to_pylist()
            known, column = self._codes_of(texts)
            places = np.array([*(known[text] for text in texts), NO_VALUE], np.int32)
            own = places[own]  # -1 is the last
        if len(gone) + len(put) <= _FEW:
            codes = _spliced(self.codes, gone.tolist(), put.tolist(), own)
        else:
            kept = np.delete(self.codes, gone)
            codes = np.insert(kept, put - np.searchsorted(gone, put), own)
        return self._tidy(codes, column)

    @staticmethod
    def joined(parts: Sequence[PropertyCodes]) -> PropertyCodes:
        """The codes of consecutive parts as one."""
        return PropertyCodes.of(pa.concat_arrays([part.column() for part in parts]))

    def _codes_of(self, values: Sequence[str | None]) -> tuple[Mapping[str, int], pa.LargeStringArray]:
        """The code of each value, and a column that has them all."""
        known: dict[str, int] = {}
        added: list[str] = []
        for value in values:
            if value is not None and value not in known:
                code = self.code(value)
                if code == NO_VALUE:
                    code = len(self.values) + len(added)
                    added.append(value)
                known[value] = code
        if not added:
            return known, self.values
        return known, pa.concat_arrays([self.values, pa.array(added, _TEXT)])

    @staticmethod
    def _tidy(codes: Array, values: pa.LargeStringArray) -> PropertyCodes:
        made = PropertyCodes(codes, values)
        if len(values) > 2 * len(codes) + _MOST_UNUSED:
            return PropertyCodes.of(made.column())
        return made

    def __repr__(self) -> str:
        return f"<PropertyCodes of {counted(len(self.codes), 'row')}, {counted(len(self.values), 'value')}>"


def _spliced(codes: Array, gone: list[int], put: list[int], own: Array) -> Array:
    """Codes after changes, in one pass over memory: a step for each change."""
    pieces: list[Array] = []
    begin = 0
    for row, number in sorted(
        [*((row, -1) for row in gone), *zip(put, range(len(put)), strict=True)], key=_place
    ):
        pieces.append(codes[begin:row])
        begin = row
        if number < 0:
            begin = row + 1
        else:
            pieces.append(own[number : number + 1])
    pieces.append(codes[begin:])
    return np.concatenate(pieces)


def _place(change: tuple[int, int]) -> tuple[int, bool, int]:
    """A sort key: what is put before a row comes before the removal of the row."""
    row, number = change
    return row, number < 0, number
