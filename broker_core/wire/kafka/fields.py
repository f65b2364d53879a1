"""The fields of messages, declared as Kafka's own message definitions have them, and their codecs by version.

A message is a :class:`Struct` of fields. Each says in which versions it is there, and in which it may be null, as text:
``"0+"``, ``"4-8"``, ``"3"``. A codec of one version is compiled with its first use. The value of a struct is a ``dict``
by the names of its fields; reading gives every field of the struct, with the default where the version lacks it;
writing takes the default for a name that is missing, and leaves out what the version lacks.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from broker_core.wire.kafka.reader import MalformedMessage, Reader
from broker_core.wire.kafka.writer import Encoded, Writer

__all__ = [
    "BOOLEAN",
    "BYTES",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "STRING",
    "UINT16",
    "UUID",
    "ZERO_ID",
    "Array",
    "Field",
    "Fields",
    "Kind",
    "Struct",
    "Versions",
]

#: The value of a struct.
Fields: TypeAlias = "dict[str, Any]"
#: The id that stands for none.
ZERO_ID: Final = uuid.UUID(int=0)


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
    """How a kind of value is read and written in one version."""

    read: Callable[[Reader], Any]
    write: Callable[[Writer, Any], None]


class Kind(ABC):
    """A kind of value. ``default`` is that of a field which names none."""

    default: Any = None

    @abstractmethod
    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:
        """How it is read and written; ``flexible`` is the encoding with variable lengths (KIP-482)."""


class _Plain(Kind):
    """A value of one size, the same in all encodings."""

    def __init__(self, name: str, default: Any) -> None:
        self.name = name
        self.default = default

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:  # noqa: ARG002 - as of all kinds
        return Codec(getattr(Reader, self.name), getattr(Writer, self.name))


class _Sized(Kind):
    """Text or bytes."""

    def __init__(self, name: str, default: Any) -> None:
        self.name = name
        self.default = default

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:  # noqa: ARG002 - as of all kinds
        read_it, write_it = getattr(Reader, self.name), getattr(Writer, self.name)

        def read(reader: Reader) -> Any:
            value = read_it(reader, compact=flexible)
            if value is None and not nullable:
                raise MalformedMessage("null where there must be a value")
            return value

        def write(writer: Writer, value: Any) -> None:
            _check_null(value, nullable)
            write_it(writer, value, compact=flexible)

        return Codec(read, write)


BOOLEAN: Final = _Plain("boolean", False)
INT8: Final = _Plain("int8", 0)
INT16: Final = _Plain("int16", 0)
UINT16: Final = _Plain("uint16", 0)
INT32: Final = _Plain("int32", 0)
INT64: Final = _Plain("int64", 0)
FLOAT64: Final = _Plain("float64", 0.0)
UUID: Final = _Plain("topic_id", ZERO_ID)
STRING: Final = _Sized("string", "")
BYTES: Final = _Sized("bytes", b"")


class Array(Kind):
    """An array of values of one kind; its value is a list, or :class:`~.writer.Encoded` to write."""

    default: Any = ()

    def __init__(self, of: Kind) -> None:
        self.of = of

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:
        read_one, write_one = self.of.codec(version, flexible=flexible, nullable=False)

        def read(reader: Reader) -> list[Any] | None:
            count = reader.elements(compact=flexible)
            if count is None:
                if not nullable:
                    raise MalformedMessage("null where there must be an array")
                return None
            return [read_one(reader) for _ in range(count)]

        def write(writer: Writer, value: Sequence[Any] | Encoded | None) -> None:
            _check_null(value, nullable)
            if isinstance(value, Encoded):
                writer.length(value.count, compact=flexible)
                for piece in value.pieces:
                    writer.raw(piece)
                return
            writer.length(None if value is None else len(value), compact=flexible)
            for each in value or ():
                write_one(writer, each)

        return Codec(read, write)


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``tag``: it is a tagged field from the version ``tagged`` on, and there only where it is not the
    default. ``default`` ``...`` is that of its kind, ``None`` null.
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


class _Compiled(NamedTuple):
    plain: tuple[tuple[Field, Codec], ...]
    tagged: Mapping[int, tuple[Field, Codec]]


@dataclass(frozen=True, slots=True, eq=False)
class _Cache:
    by_version: dict[tuple[int, bool], _Compiled] = field(default_factory=dict)


class Struct(Kind):
    """Fields in order. A struct that may be null is preceded by a byte."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self._cache = _Cache()

    def defaults(self) -> Fields:
        """A value with the default of every field."""
        return {each.name: each.start for each in self.fields}

    def codec(self, version: int, *, flexible: bool, nullable: bool) -> Codec:
        def read(reader: Reader) -> Fields | None:
            if nullable and reader.int8() < 0:
                return None
            return self.read(reader, version, flexible=flexible)

        def write(writer: Writer, value: Mapping[str, Any] | None) -> None:
            if nullable:
                writer.int8(-1 if value is None else 1)
            else:
                _check_null(value, nullable)
            if value is not None:
                self.write(writer, value, version, flexible=flexible)

        return Codec(read, write)

    def read(self, reader: Reader, version: int, *, flexible: bool) -> Fields:
        """The value of one version. Raises :exc:`~.reader.MalformedMessage`."""
        compiled = self._compiled(version, flexible)
        value = self.defaults()
        for each, codec in compiled.plain:
            value[each.name] = codec.read(reader)
        if flexible:
            for _ in range(reader.unsigned_varint()):
                tag, size = reader.unsigned_varint(), reader.unsigned_varint()
                before = reader.within(size)
                known = compiled.tagged.get(tag)
                if known is not None:
                    value[known[0].name] = known[1].read(reader)
                reader.leave(before)
        return value

    def write(self, writer: Writer, value: Mapping[str, Any], version: int, *, flexible: bool) -> None:
        """Write one version. Raises :exc:`ValueError` for null in a field that cannot be null, and :exc:`KeyError` for
        a name that is no field.
        """
        compiled = self._compiled(version, flexible)
        if not value.keys() <= {each.name for each in self.fields}:
            raise KeyError(f"no fields: {sorted(value.keys() - {each.name for each in self.fields})}")
        for each, codec in compiled.plain:
            codec.write(writer, value.get(each.name, each.start))
        if flexible:
            given = [
                (tag, codec, value[each.name])
                for tag, (each, codec) in compiled.tagged.items()
                if each.name in value and value[each.name] != each.start
            ]
            writer.unsigned_varint(len(given))
            for tag, codec, item in given:
                part = Writer()
                codec.write(part, item)
                writer.unsigned_varint(tag)
                writer.unsigned_varint(part.size)
                writer.raw(part.joined())

    def _compiled(self, version: int, flexible: bool) -> _Compiled:
        found = self._cache.by_version.get((version, flexible))
        if found is None:
            there = [
                (
                    each,
                    each.kind.codec(
                        version, flexible=flexible, nullable=version in Versions.parse(each.nullable)
                    ),
                )
                for each in self.fields
                if version in Versions.parse(each.versions)
            ]
            plain = tuple((each, codec) for each, codec in there if each.tag is None)
            tagged = {each.tag: (each, codec) for each, codec in there if each.tag is not None}
            found = _Compiled(plain, dict(sorted(tagged.items())))
            self._cache.by_version[version, flexible] = found
        return found


def _check_null(value: object, nullable: bool) -> None:
    if value is None and not nullable:
        raise ValueError("null in a field that cannot be null")
