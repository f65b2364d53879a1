"""Reading the values of Kafka's protocol from untrusted bytes.

Every length is compared with the bytes that are left before it is used, and the elements of all arrays together are
bounded: an array costs more memory than its bytes.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["MOST_ELEMENTS", "ZERO_ID", "MalformedMessage", "Reader", "varint"]

#: Elements of all arrays of one message.
MOST_ELEMENTS: Final = 250_000

#: The id that means "none".
ZERO_ID: Final = uuid.UUID(int=0)
_ZERO: Final = ZERO_ID.bytes
_Number = TypeVar("_Number", int, float)


class MalformedMessage(ValueError):
    """Bytes are not a message of Kafka's protocol. The connection is closed, as in Kafka."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length at an offset, and its end. Raises :exc:`IndexError` if the bytes end before."""
    value = shift = 0
    while shift < 35:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise MalformedMessage(f"the variable-length integer before byte {at} is too long")


def _number(letter: str, _type: type[_Number]) -> Callable[[Reader], _Number]:
    """A method that reads a number of a fixed size, by its letter in :mod:`struct`."""
    packed = struct.Struct(f">{letter}")
    unpack, size = packed.unpack_from, packed.size

    def read(reader: Reader) -> _Number:
        value: _Number = unpack(reader._data, reader._skip(size))[0]  # noqa: SLF001 - it becomes a method
        return value

    return read


class Reader:
    """Reader of one message in ``data``, from byte ``at`` on. Each method raises :exc:`MalformedMessage`."""

    __slots__ = ("_data", "_elements", "_end", "at", "known")

    def __init__(self, data: bytes, at: int = 0, *, most_elements: int = MOST_ELEMENTS) -> None:
        self._data = data
        self._end = len(data)
        self._elements = most_elements
        #: The byte that is read next.
        self.at = at
        #: Values that were read from equal bytes before, so that a reader of values need not decode them again.
        self.known: Any = None

    @property
    def data(self) -> bytes:
        """All of the message."""
        return self._data

    @property
    def left(self) -> int:
        """Bytes that are not read yet."""
        return self._end - self.at

    def _skip(self, size: int) -> int:
        """The offset of the next bytes, which are marked as read."""
        at = self.at
        if size < 0 or size > self._end - at:
            raise MalformedMessage(f"{size} bytes are announced at byte {at}, and {self._end - at} are left")
        self.at = at + size
        return at

    def raw(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        at = self._skip(size)
        return self._data[at : at + size]

    def boolean(self) -> bool:
        return bool(self._data[self._skip(1)])

    int8 = _number("b", int)
    int16 = _number("h", int)
    uint16 = _number("H", int)
    int32 = _number("i", int)
    int64 = _number("q", int)
    float64 = _number("d", float)

    def topic_id(self) -> uuid.UUID:
        data = self.raw(16)
        return ZERO_ID if data == _ZERO else uuid.UUID(bytes=data)

    def unsigned_varint(self) -> int:
        """A number of at most five bytes; one that does not fit in 32 bits is malformed."""
        at = self.at
        if at < self._end and self._data[at] < 0x80:
            self.at = at + 1
            return self._data[at]
        value = 0
        for shift in range(0, 35, 7):
            byte = self._data[self._skip(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >= 2**32:
                    break
                return value
        raise MalformedMessage(f"the variable-length integer before byte {self.at} is too long")

    def size(self, *, compact: bool, short: bool = False) -> int | None:
        """The length of a text, of bytes (``short``: of 16 bits, if not compact) or of an array.

        ``None`` for null.
        """
        size = self.unsigned_varint() - 1 if compact else self.int16() if short else self.int32()
        if size == -1:
            return None
        if size < 0 or size > self.left:
            raise MalformedMessage(
                f"a length of {size} before byte {self.at}, and {self.left} bytes are left"
            )
        return size

    def elements(self, *, compact: bool) -> int | None:
        """The number of elements of an array, ``None`` for null. Each takes one byte at least."""
        count = self.size(compact=compact)
        if count:
            self._count(count)
        return count

    def _count(self, elements: int) -> None:
        self._elements -= elements
        if self._elements < 0:
            raise MalformedMessage("too many elements in the arrays of one message")

    def plain_string(self) -> str | None:
        """A text after a length of 16 bits; invalid UTF-8 becomes U+FFFD, as in Kafka."""
        at = self.at + 2
        if at <= self._end and (size := int.from_bytes(self._data[at - 2 : at])) <= min(
            0x7FFF, self._end - at
        ):
            self.at = at + size
            return self._data[at : at + size].decode("utf-8", "replace")
        found = self.size(compact=False, short=True)
        return None if found is None else self.raw(found).decode("utf-8", "replace")

    def compact_string(self, errors: str = "replace") -> str | None:
        """A text after a length of variable size; invalid UTF-8 becomes U+FFFD, as in Kafka, or with ``errors`` another
        handler of :meth:`bytes.decode`.
        """
        at = self.at
        if at < self._end and 0 < (size := self._data[at]) < 0x80 and size <= self._end - at:
            self.at = at + size
            return self._data[at + 1 : at + size].decode("utf-8", errors)
        found = self.size(compact=True)
        if found is None:
            return None
        if found > 0x7FFF:
            raise MalformedMessage(f"a text of {found} bytes; at most 32,767 are possible")
        return self.raw(found).decode("utf-8", errors)

    def plain_bytes(self) -> bytes | None:
        size = self.size(compact=False)
        return None if size is None else self.raw(size)

    def compact_bytes(self) -> bytes | None:
        size = self.size(compact=True)
        return None if size is None else self.raw(size)

    def unpacked(self, values: struct.Struct) -> tuple[Any, ...]:
        """Values of fixed sizes, one after the other."""
        return values.unpack_from(self._data, self._skip(values.size))

    def within(self, size: int) -> int:
        """Let the next ``size`` bytes be all that is left; returns the end until now, for :meth:`leave`."""
        at = self._skip(size)
        before, self._end, self.at = self._end, at + size, at
        return before

    def leave(self, before: int) -> None:
        """Go on after the bytes of :meth:`within`, whether or not all were read."""
        self.at, self._end = self._end, before

    def tags(self) -> int:
        """The number of tagged fields of a struct; they count as elements."""
        count = self.unsigned_varint()
        if count:
            self._count(count)
        return count

    def skip_tags(self) -> None:
        """Skip unknown tagged fields."""
        for _ in range(self.tags()):
            self.unsigned_varint()
            self._skip(self.unsigned_varint())
