"""The fields of messages, declared as in Kafka's own message definitions, and their codecs by version.

A message is a :class:`Struct` of fields. Each gives the versions that have it, and those in which it may be null, as
text: ``"0+"``, ``"4-8"``, ``"3"``. A codec of one version is compiled with its first use: a request of 500 topics has
ten thousand values, so all decisions are made once for a version, and consecutive fields of fixed sizes are read and
written in one step. The value of a struct is a ``dict`` by the names of its fields; reading gives every field of the
struct, with the default if the version lacks it; writing takes the default for a missing name, and omits fields that
the version lacks.
"""

from __future__ import annotations

import copy
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeAlias

from broker_core.wire.kafka.reader import ZERO_ID, MalformedMessage, Reader
from broker_core.wire.kafka.writer import Encoded, EncodedRows, Numbered, Writer

__all__ = [
    "BOOLEAN",
    "BYTES",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "LIMIT",
    "STRING",
    "UINT16",
    "UUID",
    "ZERO_ID",
    "Array",
    "Codec",
    "Cursor",
    "Field",
    "FieldCodec",
    "Fields",
    "Kind",
    "Struct",
    "Versions",
    "struct_codec",
]

#: The value of a struct.
Fields: TypeAlias = "dict[str, Any]"
#: Values of a fixed size in an array that are read by a format made once.
_FEW: Final = 8


class Versions(NamedTuple):
    """Versions from ``first`` to ``last``, both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """``"0+"``, ``"4-8"``, ``"3"``, or ``"none"``."""
        if text == "none":
            return cls(1, 0)
        first, _, last = text.removesuffix("+").partition("-")
        return cls(int(first), 0x7FFF if text.endswith("+") else int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


class Codec(NamedTuple):
    """The codec of a kind of value in one version.

    ``packed`` is its letter in :mod:`struct` if it has a fixed size and needs nothing else.
    """

    read: Callable[[Reader], Any]
    write: Callable[[Writer, Any], None]
    packed: str = ""


class FieldCodec(NamedTuple):
    """A field of a struct in one version; ``start`` is its default."""

    name: str
    start: Any
    codec: Codec


class Kind(ABC):
    """A kind of value. ``default`` is for a field without its own; ``packed`` is the letter in :mod:`struct`."""

    default: Any = None
    packed: str = ""

    @abstractmethod
    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:
        """The codec of a version; ``flexible`` is the encoding with variable lengths (KIP-482)."""


class _Plain(Kind):
    """A value of one size, the same in all encodings."""

    def __init__(self, name: str, default: Any, packed: str = "") -> None:
        self.name = name
        self.default = default
        self.packed = packed

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:  # noqa: ARG002 - as of all kinds
        return Codec(getattr(Reader, self.name), getattr(Writer, self.name), self.packed)


class _Sized(Kind):
    """Text or bytes."""

    def __init__(self, name: str, default: Any) -> None:
        self.name = name
        self.default = default

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:  # noqa: ARG002 - as of all kinds
        encoding = "compact" if flexible else "plain"
        read = getattr(Reader, f"{encoding}_{self.name}")
        write = getattr(Writer, f"{encoding}_{self.name}")
        return Codec(read, write) if nullable else Codec(_not_null(read), _given(write))


def _not_null(read: Callable[[Reader], Any]) -> Callable[[Reader], Any]:
    def read_value(reader: Reader) -> Any:
        value = read(reader)
        if value is None:
            raise MalformedMessage("null where there must be a value")
        return value

    return read_value


def _given(write: Callable[[Writer, Any], None]) -> Callable[[Writer, Any], None]:
    def write_value(writer: Writer, value: Any) -> None:
        if value is None:
            raise ValueError("null in a field that cannot be null")
        write(writer, value)

    return write_value


class _Limit(Kind):
    """The limit of a page, an INT32. One of another size is -1, so that the request is answered with an error."""

    packed = "i"

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:  # noqa: ARG002 - as of all kinds
        def read(reader: Reader) -> int:
            try:
                value = reader.int32()
            except MalformedMessage:
                return -1
            return -1 if reader.left else value

        return Codec(read, Writer.int32)


BOOLEAN: Final = _Plain("boolean", False, "?")
INT8: Final = _Plain("int8", 0, "b")
INT16: Final = _Plain("int16", 0, "h")
UINT16: Final = _Plain("uint16", 0, "H")
INT32: Final = _Plain("int32", 0, "i")
INT64: Final = _Plain("int64", 0, "q")
FLOAT64: Final = _Plain("float64", 0.0, "d")
LIMIT: Final = _Limit()
UUID: Final = _Plain("topic_id", ZERO_ID)
STRING: Final = _Sized("string", "")
BYTES: Final = _Sized("bytes", b"")


class Array(Kind):
    """An array of values of one kind; its value is a list, or :class:`~.writer.Encoded` to write."""

    default: Any = ()

    def __init__(self, of: Kind) -> None:
        self.of = of

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:
        read_one, write_one, packed = self.of.codec(version, flexible=flexible, nullable=False)

        packs = [struct.Struct(f">{count}{packed}") for count in range(_FEW)] if packed else []

        def read(reader: Reader) -> list[Any] | None:
            count = reader.elements(compact=flexible)
            if count is None:
                return None
            if packed:
                return list(
                    reader.unpacked(packs[count] if count < _FEW else struct.Struct(f">{count}{packed}"))
                )
            return [read_one(reader) for _ in range(count)]

        def write(writer: Writer, value: Sequence[Any] | Encoded | Numbered | EncodedRows | None) -> None:
            if not isinstance(value, _WRITTEN):
                value = _encoded(value)
            if isinstance(value, Encoded):
                writer.length(value.count, compact=flexible)
                for piece in value.pieces:
                    writer.raw(piece)
                return
            writer.length(None if value is None else len(value), compact=flexible)
            for each in value or ():
                write_one(writer, each)

        return Codec(read, write) if nullable else Codec(_not_null(read), _given(write))


#: Values of an array that are written as they are.
_WRITTEN: Final = (list, Encoded)


def _encoded(
    value: Sequence[Any] | Encoded | Numbered | EncodedRows | None,
) -> Sequence[Any] | Encoded | None:
    """The elements of an array as they are written: all together if they are encoded, or each by itself."""
    if isinstance(value, Numbered):
        return value.part(0, value.count)
    return value.encoded() if isinstance(value, EncodedRows) else value


@dataclass(frozen=True, slots=True)
class Field:
    """One field. With a ``tag``, it is a tagged field, which is sent only if it is not the default. ``default`` ``...``
    is the kind's default, ``None`` null.
    """

    name: str
    kind: Kind
    versions: str = "0+"
    nullable: str = "none"
    default: Any = ...
    tag: int | None = None

    @property
    def start(self) -> Any:
        """The default."""
        value = self.kind.default if self.default is ... else self.default
        if isinstance(self.kind, Array) and value is not None:
            return list(value)
        if isinstance(self.kind, Struct) and self.default is ...:
            return self.kind.defaults()
        return value


class Struct(Kind):
    """Fields in order. A struct that may be null is preceded by a byte."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self._codecs: dict[tuple[int, bool], Codec] = {}
        self._kinds: dict[int, Mapping[str, Kind]] = {}

    def defaults(self) -> Fields:
        """A value with the default of every field."""
        return {each.name: each.start for each in self.fields}

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:
        codec = self._codec(version, flexible)
        if not nullable:
            return Codec(codec.read, _given(codec.write))

        def read(reader: Reader) -> Fields | None:
            return None if reader.int8() < 0 else codec.read(reader)

        def write(writer: Writer, value: Mapping[str, Any] | None) -> None:
            writer.int8(-1 if value is None else 1)
            if value is not None:
                codec.write(writer, value)

        return Codec(read, write)

    def read(self, reader: Reader, version: int, *, flexible: bool) -> Fields:
        """Read the value of one version. Raises :exc:`~.reader.MalformedMessage`."""
        value: Fields = self._codec(version, flexible).read(reader)
        return value

    def write(self, writer: Writer, value: Mapping[str, Any], version: int, *, flexible: bool) -> None:
        """Write one version. Raises :exc:`ValueError` for null in a field that cannot be null, and :exc:`KeyError` for
        an unknown name.
        """
        self._codec(version, flexible).write(writer, value)

    def kinds(self, version: int) -> Mapping[str, Kind]:
        """The kinds of the fields that a version has, by name."""
        found = self._kinds.get(version)
        if found is None:
            found = {each.name: each.kind for each in self.fields if version in Versions.parse(each.versions)}
            self._kinds[version] = found
        return found

    def kind_of(self, name: str) -> Kind:
        """The kind of the field of this name."""
        return next(each.kind for each in self.fields if each.name == name)

    def struct_at(self, path: str) -> Struct:
        """The struct of the field at ``path``, such as ``"topics.configs"``, or of the elements of its array."""
        found = self
        for name in path.split("."):
            kind = found.kind_of(name)
            inner = kind.of if isinstance(kind, Array) else kind
            assert isinstance(inner, Struct)
            found = inner
        return found

    def elements(
        self, path: str, values: Iterable[Mapping[str, Any]], version: int, *, flexible: bool
    ) -> Encoded:
        """Structs of the array at ``path``, such as ``"topics.configs"``, encoded to be written many times."""
        codec = self.struct_at(path).codec(version, flexible=flexible, nullable=False)
        writer = Writer()
        count = error = 0
        for count, value in enumerate(values, 1):  # noqa: B007
            codec.write(writer, value)
            error = error or value.get("error_code", 0)
        return Encoded(count, writer.pieces(), error)

    def has(self, name: str, version: int) -> bool:
        """Whether a version has the field of this name."""
        return any(each.name == name and version in Versions.parse(each.versions) for each in self.fields)

    def codec_with(self, name: str, read: Callable[[Reader], Any], version: int, *, flexible: bool) -> Codec:
        """A codec of one version that reads the field of this name by ``read``."""
        return self._made(version, flexible, {name: read})

    def _codec(self, version: int, flexible: bool) -> Codec:
        found = self._codecs.get((version, flexible))
        if found is None:
            found = self._codecs[version, flexible] = self._made(version, flexible, {})
        return found

    def _made(self, version: int, flexible: bool, reads: Mapping[str, Callable[[Reader], Any]]) -> Codec:
        there = {each.name: each for each in self.fields if version in Versions.parse(each.versions)}
        parts = {each.name: _part(each, version, flexible) for each in there.values()}
        for name, read in reads.items():
            parts[name] = parts[name]._replace(codec=Codec(read, parts[name].codec.write))
        return struct_codec(
            [parts[each.name] for each in there.values() if each.tag is None],
            {each.tag: parts[each.name] for each in there.values() if each.tag is not None},
            {each.name: each.start for each in self.fields if each.name not in there},
            flexible=flexible,
        )


class Cursor(Struct):
    """The fields of a cursor, which may be absent but never null. An unreadable cursor is empty, so that the request is
    answered with an error; an unreadable message ends the connection.
    """

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:  # noqa: ARG002 - never null
        texts = [each.name for each in self.fields if each.kind is STRING]
        inner = self._made(version, flexible, dict.fromkeys(texts, _not_null(_exact_text)))

        def read(reader: Reader) -> Fields:
            try:
                value: Fields = inner.read(reader)
            except MalformedMessage:
                return {}
            return {} if reader.left else value

        return Codec(read, inner.write)


def _exact_text(reader: Reader) -> str | None:
    """A text that is a place: with U+FFFD for invalid UTF-8 it would be another one."""
    try:
        return reader.compact_string("strict")
    except UnicodeDecodeError as invalid:
        raise MalformedMessage(str(invalid)) from invalid


def _part(each: Field, version: int, flexible: bool) -> FieldCodec:
    nullable = version in Versions.parse(each.nullable)
    return FieldCodec(each.name, each.start, each.kind.codec(version, flexible=flexible, nullable=nullable))


_MUTABLE: Final = (list, dict)


def struct_codec(
    plain: Sequence[FieldCodec],
    tagged: Mapping[int, FieldCodec],
    absent: Mapping[str, Any],
    *,
    flexible: bool,
) -> Codec:
    """A struct's codec. ``absent`` are the fields that the version lacks: their defaults are read and never written.

    ``read`` raises :exc:`~.reader.MalformedMessage`. ``write`` raises :exc:`KeyError` for an unknown name.
    """
    unread = {**absent, **{part.name: part.start for part in tagged.values()}}
    constant = {name: start for name, start in unread.items() if not isinstance(start, _MUTABLE)}
    fresh = [(name, start) for name, start in unread.items() if isinstance(start, _MUTABLE)]
    plain_names = frozenset(part.name for part in plain)
    names = plain_names.union(unread)
    reads: list[tuple[Any, Callable[[Reader], Any]]] = []  # by a name, or by a tuple of names
    writes: list[tuple[Any, Any, Callable[..., Any]]] = []  # by a name and its default, or by tuples of them
    for packed, group in groupby(plain, lambda part: bool(part.codec.packed)):
        parts = list(group)
        if packed and len(parts) > 1:
            together = struct.Struct(">" + "".join(part.codec.packed for part in parts))
            keys = tuple(part.name for part in parts)
            reads.append((keys, partial(Reader.unpacked, values=together)))
            writes.append((keys, tuple(part.start for part in parts), together.pack))
        else:
            reads += [(part.name, part.codec.read) for part in parts]
            writes += [(part.name, part.start, part.codec.write) for part in parts]

    def read(reader: Reader) -> dict[str, Any]:
        value = constant.copy()
        for name, start in fresh:
            value[name] = copy.deepcopy(start)
        for key, read_next in reads:
            if key.__class__ is str:
                value[key] = read_next(reader)
            else:
                value.update(zip(key, read_next(reader), strict=True))
        if flexible:
            for _ in range(reader.tags()):
                tag, size = reader.unsigned_varint(), reader.unsigned_varint()
                before = reader.within(size)
                known = tagged.get(tag)
                if known is not None:
                    value[known.name] = known.codec.read(reader)
                reader.leave(before)
        return value

    def write(writer: Writer, value: Mapping[str, Any]) -> None:
        only_plain = plain_names.issuperset(value)
        if not only_plain and not names.issuperset(value):
            raise KeyError(f"no fields: {sorted(value.keys() - names)}")
        get = value.get
        for key, default, write_next in writes:
            if key.__class__ is str:
                write_next(writer, get(key, default))
            else:
                writer.raw(write_next(*map(get, key, default)))
        if flexible and only_plain:
            writer.unsigned_varint(0)
        elif flexible:
            given = [
                (tag, part.codec, value[part.name])
                for tag, part in tagged.items()
                if part.name in value and value[part.name] != part.start
            ]
            writer.unsigned_varint(len(given))
            for tag, codec, item in given:
                inner = Writer()
                codec.write(inner, item)
                writer.unsigned_varint(tag)
                writer.unsigned_varint(inner.size)
                writer.raw(inner.joined())

    return Codec(read, write)
