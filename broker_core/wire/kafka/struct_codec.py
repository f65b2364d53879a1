"""Codecs of one version of a struct, which read and write consecutive fields of fixed sizes in one step.

A request of 500 topics has ten thousand values, so all decisions are made once for a version.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from broker_core.wire.kafka.reader import Reader
from broker_core.wire.kafka.writer import Writer

__all__ = ["Codec", "FieldCodec", "struct_codec"]


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
    names = frozenset(unread) | {part.name for part in plain}
    reads: list[tuple[Any, Callable[[Reader], Any]]] = []  # by a name, or by a tuple of names
    writes: list[Callable[[Writer, Callable[..., Any]], None]] = []
    for packed, group in groupby(plain, lambda part: bool(part.codec.packed)):
        parts = list(group)
        if packed and len(parts) > 1:
            together = struct.Struct(">" + "".join(part.codec.packed for part in parts))
            reads.append((tuple(part.name for part in parts), partial(Reader.unpacked, values=together)))
            writes.append(_writing(together, parts))
        else:
            reads += [(part.name, part.codec.read) for part in parts]
            writes += [_writing_one(part) for part in parts]

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
        if not value.keys() <= names:
            raise KeyError(f"no fields: {sorted(value.keys() - names)}")
        get = value.get
        for write_next in writes:
            write_next(writer, get)
        if flexible:
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


def _writing(
    together: struct.Struct, parts: Sequence[FieldCodec]
) -> Callable[[Writer, Callable[..., Any]], None]:
    items = [(part.name, part.start) for part in parts]
    pack = together.pack

    def write(writer: Writer, get: Callable[..., Any]) -> None:
        writer.raw(pack(*[get(name, start) for name, start in items]))

    return write


def _writing_one(part: FieldCodec) -> Callable[[Writer, Callable[..., Any]], None]:
    name, start, (_, write_one, _) = part

    def write(writer: Writer, get: Callable[..., Any]) -> None:
        write_one(writer, get(name, start))

    return write
