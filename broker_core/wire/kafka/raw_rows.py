"""Rows of answers as received bytes with the start of each, so that rows that are passed on are not decoded.

Rows of one answer can be cut, reordered, and joined with rows of other nodes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Final, TypeAlias, overload

import numpy as np
import pyarrow as pa

from broker_core.counted import counted
from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import Array, Codec, Fields, Kind, Struct
from broker_core.wire.kafka.frames import MOST_ANSWERED, read_response
from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.row_scan import RawPath, compiled_scan, own_places
from broker_core.wire.kafka.writer import Buffer, Encoded, EncodedRows, unsigned_varint

__all__ = ["RawLevel", "RawRows", "has_rows", "read_raw_request", "read_raw_response"]

_Array: TypeAlias = np.ndarray[Any, Any]

#: Lengths from here on take more than one byte.
_LONG: Final = 0x7F
#: No places; a place in a message of up to 2 GiB has four bytes.
_NONE: Final = array("i")


@dataclass(frozen=True, slots=True)
class RawLevel:
    """The rows of one array, in all rows that contain it. ``starts`` are the offsets of the rows.

    Rows with an inner array have the place of its length (``inner``), the number of its rows (``counts``), and the
    offset after them (``tails``), by row. ``fields`` are the places of the requested fields, by row.
    """

    starts: array[int]
    inner: array[int]
    counts: array[int]
    tails: array[int]
    fields: dict[str, array[int]]

    @classmethod
    def joined(cls, levels: Sequence[RawLevel], shifts: Sequence[int]) -> RawLevel:
        """The rows of several levels as one, each shifted by so many bytes."""

        def moved(columns: Iterable[array[int]]) -> array[int]:
            found = array("i")
            for column, shift in zip(columns, shifts, strict=True):
                found.frombytes((np.array(column, np.int32) + np.int32(shift)).tobytes())
            return found

        counts = array("i")
        for each in levels:
            counts.extend(each.counts)
        return cls(
            moved(each.starts for each in levels),
            moved(each.inner for each in levels),
            counts,
            moved(each.tails for each in levels),
            {name: moved(each.fields[name] for each in levels) for name in levels[0].fields},
        )


class RawRows(EncodedRows, Sequence[Any]):
    """The rows of an array of an answer, decoded when they are accessed.

    ``levels`` are the levels of the array and of the requested arrays in its rows; ``end`` is the offset after the last
    row.
    """

    def __init__(
        self,
        data: bytes,
        levels: Sequence[RawLevel],
        end: int,
        read: Callable[[Reader], Any],
        *,
        compact: bool,
        begin: int = 0,
        scan: object = None,
    ) -> None:
        self.data: Final = data
        self._begin: Final = begin
        self._scan: Final = scan
        self.levels: Final = levels
        self.end: Final = end
        self.compact: Final = compact
        #: Reads one row.
        self.read: Final = read

    def __len__(self) -> int:
        return len(self.levels[0].starts)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        starts = self.levels[0].starts[index]
        if isinstance(starts, int):
            return self._row(starts)
        return [self._row(start) for start in starts]

    def __iter__(self) -> Iterator[Any]:
        return map(self._row, self.levels[0].starts)

    def _row(self, start: int) -> Any:
        return self.read(Reader(self.data, start, most_elements=MOST_ANSWERED))

    def are_in(self, message: bytes) -> bool:
        """Whether a message has the bytes of these rows at the place where their own message has them."""
        return message.startswith(self.data[self._begin : self.end], self._begin)

    def are_next(self, reader: Reader, scan: object) -> bool:
        """Whether the next bytes of a reader equal those in which ``scan`` has found these rows: it need not run."""
        size = self.end - self._begin
        return (
            scan is self._scan
            and reader.left >= size
            and reader.data.startswith(self.data[self._begin : self.end], reader.at)
        )

    def skip(self, reader: Reader) -> None:
        """Skip bytes for which :meth:`are_next` is true."""
        reader.at += self.end - self._begin

    @cached_property
    def ends(self) -> list[_Array]:
        """The offsets after the rows, by level."""
        found: list[_Array] = []
        for depth, level in enumerate(self.levels):
            ends = np.append(np.asarray(level.starts)[1:], np.int32(self.end))[: len(level.starts)]
            if depth:
                above = self.levels[depth - 1]
                counts = np.array(above.counts)
                has = counts > 0
                ends[np.cumsum(counts)[has] - 1] = np.array(above.tails)[has]
            found.append(ends)
        return found

    def end_of(self, row: int) -> int:
        """The offset of the byte after a row."""
        starts = self.levels[0].starts
        return starts[row + 1] if row + 1 < len(starts) else self.end

    @property
    def size(self) -> int:
        """The bytes of the rows themselves."""
        starts = self.levels[0].starts
        return self.end - starts[0] if starts else 0

    @property
    def nbytes(self) -> int:
        """Bytes that the rows and their places take."""
        places = [
            column
            for level in self.levels
            for column in (level.starts, level.inner, level.counts, level.tails, *level.fields.values())
        ]
        return len(self.data) + sum(column.itemsize * len(column) for column in places)

    def few(self, count: int, size: int) -> list[Any]:
        """The rows of up to ``size`` bytes among the first ``count``."""
        edges = [*self.levels[0].starts[: count + 1], self.end][: count + 1]
        return [self._row(start) for start, end in pairwise(edges) if end - start <= size]

    def texts(self, field: str, level: int = 0) -> list[str]:
        """The text of a field in each row of a level, whose places were requested; empty for null."""
        read = Reader.compact_string if self.compact else Reader.plain_string
        return [read(Reader(self.data, place)) or "" for place in self.levels[level].fields[field]]

    def column(self, field: str) -> pa.LargeBinaryArray | None:
        """A text of each row as bytes, of a field whose places were asked for; ``None``, if one is null or long."""
        data = np.frombuffer(self.data, np.uint8)
        starts = np.array(self.levels[0].fields[field], np.int64)
        sizes = data[starts].astype(np.int64)
        sizes = sizes - 1 if self.compact else sizes * 256 + data[starts + 1]
        starts += 1 if self.compact else 2
        if len(sizes) and not 0 <= int(sizes.min()) <= int(sizes.max()) < _LONG:
            return None
        # Each text, and what is behind it.
        edges = np.stack([starts, starts + sizes], axis=1).ravel()
        if len(edges) and (np.diff(edges) < 0).any():
            return None
        every = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(),
            max(len(edges) - 1, 0),
            [None, pa.py_buffer(edges), pa.py_buffer(self.data)],
        )
        return every.take(pa.array(np.arange(0, len(edges), 2)))

    def are_zero(self, field: str, size: int) -> bool:
        """Whether so many bytes of each row from a field on, whose places were asked for, are all zero."""
        starts = np.array(self.levels[0].fields[field], np.int64)
        return not np.frombuffer(self.data, np.uint8)[starts[:, None] + np.arange(size)].any()

    def bytes_of(self, field: str) -> list[int]:
        """The byte of a field in each row, whose places were requested."""
        return [self.data[place] for place in self.levels[0].fields[field]]

    @classmethod
    def joined(cls, parts: Sequence[RawRows]) -> RawRows:
        """The rows of several answers to requests of one API and version, one after another."""
        pieces: list[Buffer] = []
        shifts: list[int] = []
        at = 0
        for part in parts:
            starts = part.levels[0].starts
            first = starts[0] if starts else part.end
            shifts.append(at - first)
            pieces.append(memoryview(part.data)[first : part.end])
            at += part.end - first
        levels = [
            RawLevel.joined(each, shifts) for each in zip(*(part.levels for part in parts), strict=True)
        ]
        first_part = parts[0]
        return cls(b"".join(pieces), levels, at, first_part.read, compact=first_part.compact)

    def one(self, place: int) -> Encoded:
        """The row at a place."""
        return Encoded(1, [memoryview(self.data)[self.levels[0].starts[place] : self.end_of(place)]])

    def ordered(self, places: Sequence[int]) -> CutRows:
        """The rows at ``places``, in this order."""
        return self.mixed([self.one(place) for place in places])

    def mixed(self, rows: Sequence[Encoded]) -> CutRows:
        """Own and other rows as a copy, which keeps no answer in memory."""
        data = b"".join(piece for row in rows for piece in row.pieces)
        return self.cut(Encoded(sum(row.count for row in rows), [memoryview(data)] if data else []))

    def length(self, count: int) -> bytes:
        """The encoded length of an array of so many rows."""
        return unsigned_varint(count + 1) if self.compact else count.to_bytes(4, "big")

    def cut(self, some: Encoded) -> CutRows:
        """A sequence of some encoded rows."""
        return CutRows(some, self.read)

    def encoded(self) -> Encoded:
        """All rows, to be written."""
        starts = self.levels[0].starts
        return Encoded(len(starts), [memoryview(self.data)[starts[0] : self.end]] if starts else [])


class CutRows(EncodedRows, Sequence[Any]):
    """Some rows, decoded when they are accessed."""

    def __init__(self, some: Encoded, read: Callable[[Reader], Any]) -> None:
        self._some = some
        self._read = read

    def encoded(self) -> Encoded:
        return self._some

    @cached_property
    def _rows(self) -> list[Any]:
        reader = Reader(b"".join(self._some.pieces), most_elements=MOST_ANSWERED)
        return [self._read(reader) for _ in range(self._some.count)]

    def __len__(self) -> int:
        return self._some.count

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._rows[index]


def has_rows(message: Struct, version: int, path: RawPath) -> bool:
    """Whether a version has all arrays and fields of a path."""
    kind: Kind = message
    for name, fields in path:
        if not isinstance(kind, Struct) or not kind.has(name, version):
            return False
        rows = kind.kind_of(name)
        assert isinstance(rows, Array)
        kind = rows.of
        if not all(not each or (isinstance(kind, Struct) and kind.has(each, version)) for each in fields):
            return False
    return True


def read_raw_response(path: RawPath, api: Api, version: int, message: bytes) -> tuple[int, Fields]:
    """The correlation id and the value of an answer whose first array of ``path`` is :class:`RawRows`.

    Raises :exc:`~.reader.MalformedMessage`.
    """
    codec = _codec(api.response, version, path, compact=api.is_flexible(version))
    return read_response(api, version, message, codec.read)


def read_raw_request(path: RawPath, api: Api, reader: Reader, version: int) -> Fields:
    """The value of a request whose first array of ``path`` is :class:`RawRows`, unless it is null.

    Raises :exc:`~.reader.MalformedMessage`.
    """
    value: Fields = _codec(api.request, version, path, compact=api.is_flexible(version)).read(reader)
    return value


@lru_cache(maxsize=256)
def _codec(message: Struct, version: int, path: RawPath, *, compact: bool) -> Codec:
    name = path[0][0]
    rows = message.kind_of(name)
    assert isinstance(rows, Array)
    own = own_places(message, version, path)
    scan = compiled_scan(rows.of, version, path, own, compact=compact)
    one = rows.of.codec(version, flexible=compact, nullable=False).read

    def read(reader: Reader) -> RawRows | None:
        known, begin = reader.known, reader.at
        if isinstance(known, RawRows) and known.are_next(reader, scan):
            known.skip(reader)
            return known
        count = reader.elements(compact=compact)
        if count is None:
            return None
        data = reader.data
        found: list[array[int]] = []
        try:
            end, *found = scan(data, reader.at, count)
        except (IndexError, OverflowError):
            end = len(data) + 1
        if end > len(data):
            raise MalformedMessage(
                f"an array at byte {reader.at} is announced to have {counted(count, 'row')}, and has no end"
            )
        reader.at = end
        levels, lists = [], iter(found)
        for depth, (_, fields) in enumerate(path):
            starts = next(lists)
            inner, counts, tails = (next(lists) if depth + 1 < len(path) else _NONE for _ in range(3))
            places = {each: next(lists) if each in own[depth] else starts for each in fields}
            levels.append(RawLevel(starts, inner, counts, tails, places))
        return RawRows(data, levels, end, one, compact=compact, begin=begin, scan=scan)

    return message.codec_with(name, read, version, flexible=compact)
