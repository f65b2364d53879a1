"""Scan for the starts of an array's rows in the bytes of a message, which have to be read one after another.

The scanner of a version is compiled from its fields: consecutive fields of fixed sizes are one step, and a text costs
reading its length. Many rows of one layout are found by columns (:mod:`.row_runs`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from broker_core.wire.kafka.fields import Array, Kind, Struct, Versions
from broker_core.wire.kafka.reader import MalformedMessage, varint
from broker_core.wire.kafka.row_runs import FEW_ROWS, STEP, Irregular, RowRun

__all__ = ["RawPath", "compiled_scan", "own_places"]

#: Names of arrays of a message, each in the rows of the one before, with the fields whose places are noted; "" is the
#: row itself, if it is not a struct.
RawPath: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

_SIZES: Final = {"?": 1, "b": 1, "h": 2, "H": 2, "i": 4, "q": 8, "d": 8}
_ID: Final = 16


class _ScannerCode:
    """The source code of a scanner: ``at`` is the current offset, ``ahead`` the fixed bytes to add to it.

    ``marks``: it notes the offsets of all lengths, those of texts apart, and scans no irregular row.
    """

    def __init__(
        self, version: int, path: RawPath, own: Sequence[Sequence[str]], *, compact: bool, marks: bool = False
    ) -> None:
        self.lines: list[str] = []
        #: The kind of the rows of each level's array.
        self.kinds: dict[int, Kind] = {}
        self._marks = marks
        self._version = version
        self._path = path
        self._own = own
        self._compact = compact
        self._ahead = 0
        self._depth = 0  # of loops, for their variables

    def line(self, text: str, indent: int) -> None:
        self.lines.append("    " * indent + text)

    def settle(self, indent: int) -> None:
        """Let ``at`` be the offset of the next byte."""
        if self._ahead:
            self.line(f"at += {self._ahead}", indent)
            self._ahead = 0

    def mark(self, kind: str, indent: int) -> None:
        """Note the offset of a length."""
        if self._marks:
            self.line(f"{kind}(at)", indent)

    def loop(self, kind: Kind, count: str, level: int, indent: int) -> int:
        """A loop over so many rows of an array; returns the indentation of what is in it."""
        if self._marks or not self._compact or level < 0:
            self.line(f"for _ in range({count}):", indent)
            return indent + 1
        self.kinds[level] = kind
        left, step = f"l{self._depth}", f"p{self._depth}"
        self.line(f"{left} = {count}; {step} = {STEP}", indent)
        self.line(f"while {left}:", indent)
        self.line(f"some = {left}", indent + 1)
        self.line(f"if some >= {FEW_ROWS}:", indent + 1)
        self.line(f"done, at = run{level}(lists{level}, data, at, {left})", indent + 2)
        self.line(f"{left} -= done", indent + 2)
        self.line(f"{step} = {STEP} if done >= {FEW_ROWS} else {step} * 2", indent + 2)
        self.line(f"some = min({left}, {step})", indent + 2)
        self.line(f"{left} -= some", indent + 1)
        self.line("for _ in range(some):", indent + 1)
        return indent + 2

    def rows(self, struct: Struct, level: int, indent: int) -> None:
        """The fields of one row of the array of a level; below the last one, of any struct (``level`` -1)."""
        fields = self._own[level] if level >= 0 else ()
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
            self.mark("m", indent)
            self.line("if data[at]: at = tags(data, at)", indent)
            self.line("else: at += 1", indent)

    def row(self, kind: Kind, level: int, indent: int) -> None:
        """One row of the array of a level."""
        if level >= 0:
            self.line(f"s{level}(at)", indent)
        if isinstance(kind, Struct):
            self.rows(kind, level, indent)
        else:
            self.value(kind, indent, nullable=False)
        self.settle(indent)

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
                self.mark("m", indent)
                self.line("at += 1", indent)
                self.line("if data[at - 1] < 128:", indent)
                indent += 1
            self.rows(kind, -1, indent)
            self.settle(indent)
        elif self._compact:
            self.mark("w", indent)
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
            self.mark("m", indent)
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
            inside = self.loop(kind.of, count, level if level > 0 else -1, indent)
            self.row(kind.of, level, inside)
        if level > 0:
            self.line(f"t{level - 1}(at)", indent)
        self._depth -= 1


def own_places(message: Struct, version: int, path: RawPath) -> list[list[str]]:
    """The fields of each level whose places are not the starts of their rows."""
    found: list[list[str]] = []
    kind: Kind = message
    for name, fields in path:
        assert isinstance(kind, Struct)
        rows = kind.kind_of(name)
        assert isinstance(rows, Array)
        kind = rows.of
        there = kind.fields if isinstance(kind, Struct) else ()
        first = next(
            (each.name for each in there if each.tag is None and version in Versions.parse(each.versions)), ""
        )
        found.append([each for each in fields if each not in ("", first)])
    return found


def compiled_scan(
    kind: Kind, version: int, path: RawPath, own: Sequence[Sequence[str]], *, compact: bool
) -> Callable[[bytes, int, int], tuple[Any, ...]]:
    """A function that returns the end of so many rows, and the lists of the levels (:class:`RawLevel`)."""
    source = _ScannerCode(version, path, own, compact=compact)
    lists = _lists(own)
    source.line("def scan(data, at, count):", 0)
    _make(source, lists)
    for level in range(len(path)):
        names = ", ".join(f"of_{each}" for each in lists[_first_of(own, level) :])
        source.line(f"lists{level} = ({names},)", 1)
    source.row(kind, 0, source.loop(kind, "count", 0, 1))
    source.line(f"return at, {', '.join(f'of_{each}' for each in lists)}", 1)
    runs = {
        f"run{level}": _run(each, version, path[level:], own[level:]).extend
        for level, each in source.kinds.items()
    }
    more: dict[str, Any] = {
        "tags": _tags,
        "text": _text,
        "short": partial(_plain, 2),
        "long": partial(_plain, 4),
        "length": _compact_length if compact else _plain_length,
    }
    scan: Callable[[bytes, int, int], tuple[Any, ...]] = _compiled(source, more | runs)
    return scan


def _run(kind: Kind, version: int, path: RawPath, own: Sequence[Sequence[str]]) -> RowRun:
    """The reader of runs of rows of the first array of ``path``."""
    source = _ScannerCode(version, path, own, compact=True, marks=True)
    lists = _lists(own)
    source.line("def scan(data, at):", 0)
    source.line("texts = []; w = texts.append; others = []; m = others.append", 1)
    _make(source, lists)
    source.row(kind, 0, 1)
    source.line(f"return at, texts, others, {', '.join(f'of_{each}' for each in lists)}", 1)
    scan = _compiled(source, {"tags": _irregular, "text": _irregular, "length": _no_rows})
    return RowRun(scan, [each.startswith("n") for each in lists])


def _lists(own: Sequence[Sequence[str]]) -> list[str]:
    """The lists of all levels."""
    lists: list[str] = []
    for level, fields in enumerate(own):
        lists.append(f"s{level}")
        if level + 1 < len(own):
            lists += [f"i{level}", f"n{level}", f"t{level}"]
        lists += [f"k{level}_{number}" for number in range(len(fields))]
    return lists


def _first_of(own: Sequence[Sequence[str]], level: int) -> int:
    """The place of a level's first list."""
    return len(_lists(own)) - len(_lists(own[level:]))


def _make(source: _ScannerCode, lists: Iterable[str]) -> None:
    """Make the lists, each with the function that puts a place into it."""
    for each in lists:
        source.line(f"of_{each} = array('i'); {each} = of_{each}.append", 1)
        if each.startswith("s"):
            source.line(f"e{each[1:]} = of_{each}.extend", 1)


def _compiled(source: _ScannerCode, known: dict[str, Any]) -> Any:
    known = {"array": array, **known}
    exec("\n".join(source.lines), known)  # noqa: S102 - made of the tables of Kafka's messages alone
    return known["scan"]


def _size(kind: Kind) -> int | None:
    """The size of a value, if it is fixed."""
    if isinstance(kind, Array | Struct):
        return None
    return _SIZES[kind.packed] if kind.packed else _ID if getattr(kind, "name", "") == "topic_id" else None


def _irregular(_data: bytes, _at: int) -> int:
    raise Irregular


def _no_rows(data: bytes, at: int) -> tuple[int, int]:
    """The number of elements of an array that is null."""
    if data[at]:
        raise Irregular
    return 0, at + 1


def _text(data: bytes, at: int) -> int:
    """The end of a text or bytes of any length."""
    size, at = varint(data, at)
    return at + max(size - 1, 0)


def _plain(width: int, data: bytes, at: int) -> int:
    """The end of a text after a length of so many bytes."""
    end = at + width
    size = int.from_bytes(data[at:end], "big", signed=True)
    if size < -1 or end > len(data):
        raise MalformedMessage(f"a length of {size} before byte {end}")
    return end + max(size, 0)


def _compact_length(data: bytes, at: int) -> tuple[int, int]:
    """The number of elements of an array, 0 for null, and their start."""
    count, at = varint(data, at)
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
    """The end of tagged fields."""
    count, at = varint(data, at)
    for _ in range(count):
        _, at = varint(data, at)
        size, at = varint(data, at)
        at += size
    return at
