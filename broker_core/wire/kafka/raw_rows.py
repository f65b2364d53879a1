"""Rows of answers that stay the bytes that they came as, with where each begins: what is passed on is not decoded.

Where the rows of an array begin, only reading all before them tells. What reads a version is compiled from its fields:
neighbours of fixed sizes are one step, and a text costs its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Final, TypeAlias, overload

from broker_core.counted import counted
from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import Array, Fields, Kind, Struct, Versions
from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.struct_codec import Codec
from broker_core.wire.kafka.writer import Encoded, EncodedRows, unsigned_varint

__all__ = ["RawLevel", "RawPath", "RawRows", "has_rows", "read_raw_request", "read_raw_response"]

#: Names of arrays of a message, each in the rows of the one before, with the fields whose places are noted; "" is the
#: row itself, where it is no struct.
RawPath: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

#: Elements of all arrays of one answer.
_MOST: Final = 8_000_000
_SIZES: Final = {"?": 1, "b": 1, "h": 2, "H": 2, "i": 4, "q": 8, "d": 8}
_ID: Final = 16


@dataclass(frozen=True, slots=True)
class RawLevel:
    """The rows of one array, of all that they are in. ``starts`` are the bytes that they begin at.

    What has rows below has the place of the length of their array (``inner``), their number (``counts``), and the byte
    behind them (``tails``), by row. ``fields`` are the places of the fields that were asked for, by row.
    """

    starts: list[int]
    inner: list[int]
    counts: list[int]
    tails: list[int]
    fields: dict[str, list[int]]


class RawRows(EncodedRows, Sequence[Any]):
    """The rows of an array of an answer, decoded where they are looked at.

    ``levels`` are those of the array and of the arrays in its rows that were asked for; ``end`` is behind the last row.
    """

    def __init__(
        self,
        data: bytes,
        levels: Sequence[RawLevel],
        end: int,
        read: Callable[[Reader], Any],
        *,
        compact: bool,
    ) -> None:
        self.data: Final = data
        self.levels: Final = levels
        self.end: Final = end
        self.compact: Final = compact
        self._read = read

    def __len__(self) -> int:
        return len(self.levels[0].starts)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        starts = self.levels[0].starts[index]
        if isinstance(starts, list):
            return [self._row(start) for start in starts]
        return self._row(starts)

    def __iter__(self) -> Iterator[Any]:
        return map(self._row, self.levels[0].starts)

    def _row(self, start: int) -> Any:
        return self._read(Reader(self.data, start, most_elements=_MOST))

    @cached_property
    def ends(self) -> list[list[int]]:
        """By level the bytes behind the rows."""
        found: list[list[int]] = []
        for depth, level in enumerate(self.levels):
            ends = [*level.starts[1:], self.end]
            if depth:
                above, row = self.levels[depth - 1], 0
                for count, tail in zip(above.counts, above.tails, strict=True):
                    row += count
                    if count:
                        ends[row - 1] = tail
            found.append(ends[: len(level.starts)])
        return found

    def length(self, count: int) -> bytes:
        """The length in front of an array of so many rows."""
        return unsigned_varint(count + 1) if self.compact else count.to_bytes(4, "big")

    def cut(self, some: Encoded) -> CutRows:
        """Some of them."""
        return CutRows(some, self._read)

    def encoded(self) -> Encoded:
        """All of them, to be written."""
        starts = self.levels[0].starts
        return Encoded(len(starts), [memoryview(self.data)[starts[0] : self.end]] if starts else [])


class CutRows(EncodedRows, Sequence[Any]):
    """Some rows, which are decoded where they are looked at."""

    def __init__(self, some: Encoded, read: Callable[[Reader], Any]) -> None:
        self._some = some
        self._read = read

    def encoded(self) -> Encoded:
        return self._some

    @cached_property
    def _rows(self) -> list[Any]:
        reader = Reader(b"".join(self._some.pieces), most_elements=_MOST)
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
    for array, fields in path:
        if not isinstance(kind, Struct) or not kind.has(array, version):
            return False
        rows = kind.kind_of(array)
        assert isinstance(rows, Array)
        kind = rows.of
        if not all(not each or (isinstance(kind, Struct) and kind.has(each, version)) for each in fields):
            return False
    return True


def read_raw_response(path: RawPath, api: Api, version: int, message: bytes) -> tuple[int, Fields]:
    """The correlation id and the value of an answer whose first array of ``path`` is :class:`RawRows`.

    Raises :exc:`~.reader.MalformedMessage`.
    """
    reader = Reader(message, most_elements=_MOST)
    number = reader.int32()
    if api.is_flexible(version) and not api.plain_response_header:
        reader.skip_tags()
    return number, _codec(api.response, version, path, compact=api.is_flexible(version)).read(reader)


def read_raw_request(path: RawPath, api: Api, reader: Reader, version: int) -> Fields:
    """The value of a request whose first array of ``path`` is :class:`RawRows`, unless it is null.

    Raises :exc:`~.reader.MalformedMessage`.
    """
    value: Fields = _codec(api.request, version, path, compact=api.is_flexible(version)).read(reader)
    return value


@lru_cache(maxsize=256)
def _codec(message: Struct, version: int, path: RawPath, *, compact: bool) -> Codec:
    name = path[0][0]
    array = message.kind_of(name)
    assert isinstance(array, Array)
    scan = _compiled(array.of, version, path, compact=compact)
    one = array.of.codec(version, flexible=compact, nullable=False).read

    def read(reader: Reader) -> RawRows | None:
        count = reader.elements(compact=compact)
        if count is None:
            return None
        data = reader.data
        found: list[list[int]] = []
        try:
            end, *found = scan(data, reader.at, count)
        except IndexError:
            end = len(data) + 1
        if end > len(data):
            raise MalformedMessage(
                f"an array at byte {reader.at} is announced to have {counted(count, 'row')}, and has no end"
            )
        reader.at = end
        levels, lists = [], iter(found)
        for depth, (_, fields) in enumerate(path):
            starts = next(lists)
            inner, counts, tails = (next(lists) if depth + 1 < len(path) else [] for _ in range(3))
            places = {each: next(lists) if each else starts for each in fields}
            levels.append(RawLevel(starts, inner, counts, tails, places))
        return RawRows(data, levels, end, one, compact=compact)

    return message.codec_with(name, read, version, flexible=compact)


class _Source:
    """The source of what reads rows: ``at`` is the byte that it is at, ``ahead`` the fixed bytes that are before it."""

    def __init__(self, version: int, path: RawPath, *, compact: bool) -> None:
        self.lines: list[str] = []
        self._version = version
        self._path = path
        self._compact = compact
        self._ahead = 0
        self._depth = 0  # of loops, for their variables

    def line(self, text: str, indent: int) -> None:
        self.lines.append("    " * indent + text)

    def settle(self, indent: int) -> None:
        """Let ``at`` be the byte that is next."""
        if self._ahead:
            self.line(f"at += {self._ahead}", indent)
            self._ahead = 0

    def rows(self, struct: Struct, level: int, indent: int) -> None:
        """The fields of one row of the array of a level; below the last one, of any struct (``level`` -1)."""
        fields = self._path[level][1] if level >= 0 else ()
        inner = self._path[level + 1][0] if 0 <= level < len(self._path) - 1 else None
        for each in struct.fields:
            if each.tag is not None or self._version not in Versions.parse(each.versions):
                continue
            if each.name in fields:
                shift = f" + {self._ahead}" if self._ahead else ""
                self.line(f"k{level}_{fields.index(each.name)}(at{shift})", indent)
            nullable = self._version in Versions.parse(each.nullable)
            if each.name == inner:
                assert isinstance(each.kind, Array)
                self.array(each.kind, indent, level + 1)
            else:
                self.value(each.kind, indent, nullable=nullable)
        if self._compact:
            self.settle(indent)
            self.line("if data[at]: at = tags(data, at)", indent)
            self.line("else: at += 1", indent)

    def value(self, kind: Kind, indent: int, *, nullable: bool) -> None:
        size = _size(kind)
        if size is not None:
            self._ahead += size
            return
        self.settle(indent)
        if isinstance(kind, Array):
            self.array(kind, indent)
        elif isinstance(kind, Struct):
            if nullable:
                self.line("at += 1", indent)
                self.line("if data[at - 1] < 128:", indent)
                indent += 1
            self.rows(kind, -1, indent)
            self.settle(indent)
        elif self._compact:
            self.line("n = data[at]", indent)
            self.line("if n < 128: at += n or 1", indent)
            self.line("else: at = text(data, at)", indent)
        else:
            self.line(
                f"at = {'short' if getattr(kind, 'name', '') == 'string' else 'long'}(data, at)", indent
            )

    def array(self, kind: Array, indent: int, level: int = -1) -> None:
        self.settle(indent)
        self._depth += 1
        count = f"c{self._depth}"
        if level > 0:
            self.line(f"i{level - 1}(at)", indent)
        if self._compact:
            self.line(f"{count} = data[at] - 1", indent)
            self.line(f"if 0 <= {count} < 127: at += 1", indent)
            self.line(f"else: {count}, at = length(data, at)", indent)
        else:
            self.line(f"{count}, at = length(data, at)", indent)
        if level > 0:
            self.line(f"n{level - 1}({count})", indent)
        size = _size(kind.of)
        if size is not None:
            if level > 0:
                self.line(f"e{level}(range(at, at + {count} * {size}, {size}))", indent)
            self.line(f"at += {count} * {size}", indent)
        else:
            self.line(f"for _ in range({count}):", indent)
            if level > 0:
                self.line(f"s{level}(at)", indent + 1)
            if isinstance(kind.of, Struct):
                self.rows(kind.of, level, indent + 1)
            else:
                self.value(kind.of, indent + 1, nullable=False)
            self.settle(indent + 1)
        if level > 0:
            self.line(f"t{level - 1}(at)", indent)
        self._depth -= 1


def _compiled(
    kind: Kind, version: int, path: RawPath, *, compact: bool
) -> Callable[[bytes, int, int], tuple[Any, ...]]:
    """What gives the end of so many rows, and the lists of the levels (:class:`RawLevel`), one after another."""
    source = _Source(version, path, compact=compact)
    lists = []
    for level, (_, fields) in enumerate(path):
        lists.append(f"s{level}")
        if level + 1 < len(path):
            lists += [f"i{level}", f"n{level}", f"t{level}"]
        lists += [f"k{level}_{number}" for number, each in enumerate(fields) if each]
    source.line("def scan(data, at, count):", 0)
    for each in lists:
        source.line(f"of_{each} = []; {each} = of_{each}.append", 1)
        if each.startswith("s"):
            source.line(f"e{each[1:]} = of_{each}.extend", 1)
    source.line("for _ in range(count):", 1)
    source.line("s0(at)", 2)
    if isinstance(kind, Struct):
        source.rows(kind, 0, 2)
    else:
        source.value(kind, 2, nullable=False)
    source.settle(2)
    source.line(f"return at, {', '.join(f'of_{each}' for each in lists)}", 1)
    known: dict[str, Any] = {
        "tags": _tags,
        "text": _text,
        "short": partial(_plain, 2),
        "long": partial(_plain, 4),
        "length": _compact_length if compact else _plain_length,
    }
    exec("\n".join(source.lines), known)  # noqa: S102 - made of the tables of Kafka's messages alone
    scan: Callable[[bytes, int, int], tuple[Any, ...]] = known["scan"]
    return scan


def _size(kind: Kind) -> int | None:
    """The bytes of a value that always has as many."""
    if isinstance(kind, Array | Struct):
        return None
    return _SIZES[kind.packed] if kind.packed else _ID if getattr(kind, "name", "") == "topic_id" else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    value = 0
    for shift in range(0, 35, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise MalformedMessage(f"the variable-length integer before byte {at} is too long")


def _text(data: bytes, at: int) -> int:
    """Where a text or bytes of any length end."""
    size, at = _varint(data, at)
    return at + max(size - 1, 0)


def _plain(width: int, data: bytes, at: int) -> int:
    """Where a text behind a length of so many bytes ends."""
    end = at + width
    size = int.from_bytes(data[at:end], "big", signed=True)
    if size < -1 or end > len(data):
        raise MalformedMessage(f"a length of {size} before byte {end}")
    return end + max(size, 0)


def _compact_length(data: bytes, at: int) -> tuple[int, int]:
    """The number of elements of an array, none for null, and where they begin."""
    count, at = _varint(data, at)
    return _checked(data, at, max(count - 1, 0))


def _plain_length(data: bytes, at: int) -> tuple[int, int]:
    count = int.from_bytes(data[at : at + 4], "big", signed=True)
    return _checked(data, at + 4, max(count, 0) if count >= -1 else len(data))


def _checked(data: bytes, at: int, count: int) -> tuple[int, int]:
    if count > len(data) - at:
        raise MalformedMessage(
            f"{count} elements are announced before byte {at}, and {len(data) - at} bytes are left"
        )
    return count, at


def _tags(data: bytes, at: int) -> int:
    """Where tagged fields end."""
    count, at = _varint(data, at)
    for _ in range(count):
        _, at = _varint(data, at)
        size, at = _varint(data, at)
        at += size
    return at
