"""Writing the values of Kafka's protocol, without copies of large parts that are encoded already."""

from __future__ import annotations

import struct
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

__all__ = ["Buffer", "Encoded", "EncodedRows", "Numbered", "Writer", "unsigned_varint"]

Buffer: TypeAlias = "bytes | bytearray | memoryview"

#: Bytes of an encoded part from which on it is not copied.
_LARGE: Final = 4 * 1024


@dataclass(frozen=True, slots=True)
class Encoded:
    """The ``count`` elements of an array, encoded for the version that is written.

    They replace the list in the value of a field. ``error`` is the first error code in them, 0 for none.
    """

    count: int
    pieces: Sequence[Buffer]
    error: int = 0


class EncodedRows(ABC):
    """The elements of an array that are encoded for the version that is written, and can be read like a list."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    @abstractmethod
    def encoded(self) -> Encoded:
        """All elements, to be written."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """The elements of an array that only differ by their numbers, from 0 on: ``part(start, stop)`` gives a range of
    them, encoded for the version that is written. They replace the list in the value of a field.
    """

    count: int
    part: Callable[[int, int], Encoded]


def _number(letter: str) -> Callable[[Writer, Any], None]:
    """A method that writes a number of a fixed size, by its letter in :mod:`struct`."""
    pack = struct.Struct(f">{letter}").pack

    def write(writer: Writer, value: Any) -> None:
        writer._now += pack(value)  # noqa: SLF001 - it becomes a method

    return write


class Writer:
    """Writer of one message; :meth:`pieces` are its bytes."""

    __slots__ = ("_now", "_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: list[Buffer] = []
        self._now = bytearray()
        self._size = 0  # of the pieces before that

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._size + len(self._now)

    def pieces(self) -> list[Buffer]:
        """The written bytes, in order."""
        return [*self._pieces, self._now] if self._now else list(self._pieces)

    def joined(self) -> bytes:
        """The written bytes as one."""
        return b"".join(self.pieces())

    def raw(self, data: Buffer) -> None:
        """Write bytes as they are; large ones are not copied, and must not change."""
        if len(data) < _LARGE:
            self._now += data
            return
        if self._now:
            self._pieces.append(self._now)
            self._size += len(self._now)
            self._now = bytearray()
        self._pieces.append(data)
        self._size += len(data)

    def boolean(self, value: bool) -> None:
        self._now.append(1 if value else 0)

    int8 = _number("b")
    int16 = _number("h")
    uint16 = _number("H")
    int32 = _number("i")
    int64 = _number("q")
    float64 = _number("d")

    def topic_id(self, value: uuid.UUID) -> None:
        self._now += value.int.to_bytes(16, "big")

    def unsigned_varint(self, value: int) -> None:
        if value < 0x80:
            self._now.append(value)
        else:
            self._now += unsigned_varint(value)

    def length(self, count: int | None, *, compact: bool, short: bool = False) -> None:
        """Write the length of a text, of bytes or of an array; ``None`` is null."""
        if compact:
            self.unsigned_varint(0 if count is None else count + 1)
        elif short:
            self.int16(-1 if count is None else count)
        else:
            self.int32(-1 if count is None else count)

    def plain_string(self, value: str | None) -> None:
        data = None if value is None else value.encode("utf-8", "replace")
        self.length(None if data is None else len(data), compact=False, short=True)
        if data:
            self._now += data

    def compact_string(self, value: str | None) -> None:
        if value is None:
            self._now.append(0)
            return
        data = value.encode("utf-8", "replace")
        if len(data) < 0x7F:
            self._now.append(len(data) + 1)
        else:
            self._now += unsigned_varint(len(data) + 1)
        self._now += data

    def plain_bytes(self, value: Buffer | None) -> None:
        self._bytes(value, compact=False)

    def compact_bytes(self, value: Buffer | None) -> None:
        self._bytes(value, compact=True)

    def _bytes(self, value: Buffer | None, *, compact: bool) -> None:
        self.length(None if value is None else len(value), compact=compact)
        if value:
            self.raw(value)


def unsigned_varint(value: int) -> bytes:
    """A number with seven bits a byte, the lowest first."""
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
