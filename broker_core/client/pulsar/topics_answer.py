"""The answer to a listing, read without an object per topic.

A listing of 1,000,000 topics is one message of 65 MB whose topics stand one after the other as ``0x12, length, name``.
The starts of the records are found by comparing the whole body with 0x12 and checking that each record ends where the
next begins; Arrow then makes a column of the names. Decoding by protobuf costs four times as much, in one piece and
with the interpreter locked. A wrong answer is an :exc:`~broker_core.client.UnexpectedAnswer`: a field twice,
text that is no UTF-8, "unchanged" beside topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

from broker_core.client.client_errors import UnexpectedAnswer
from broker_core.counted import counted
from broker_core.listing import TAG, MalformedFields, read_varint, walk_fields
from broker_core.wire.pulsar import WARNING, BaseCommand

__all__ = ["TopicsAnswer", "peek_request_id"]

#: Numbers of bytes: a list if the answer is small, else a numpy array.
_Positions: TypeAlias = Sequence[int]

_BODY: Final = BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
_MAX_RUNS: Final = (
    64  # topics are contiguous; a peer that scatters them would make us search the body again for each
)
_MAX_HASH: Final = 1024  # bytes; Pulsar's hash has 8
#: Bytes; a shorter run of names is read one by one, without numpy and Arrow: the command line shall start quickly.
_WALKED: Final = 64 * 1024
#: The beginnings of answers that may be large, with topics or schemas: the type, and the tag of its body.
_ANSWERS: Final = (b"\x08\x21\x8a\x02", b"\x08\x41\x8a\x04", b"\x08\x23\x9a\x02")
#: Warnings that are read of an answer, and bytes of each; a server of this project has three at the most.
_MOST_WARNINGS: Final = 8
_LONGEST_WARNING: Final = 4096
_INLINE: Final = 12  # bytes; a name that is not longer stands within Arrow's view of it


class TopicsAnswer:
    """An answer of a server: ``filtered``, ``topics_hash`` (``None`` if it sent none), ``changed``, and the topics.

    ``raw`` is the answer's encoded command. ``len()`` is the number of topics; ``column()`` and ``topics`` make the
    names.
    """

    def __init__(self, command: bytes | memoryview) -> None:
        """Read the fields of an encoded command of type GET_TOPICS_OF_NAMESPACE_RESPONSE."""
        self.raw: Final = command
        self.request_id = -1
        self.filtered = False
        self.topics_hash: str | None = None
        #: The server's warnings about the question, if it is of this project.
        self.warnings: tuple[str, ...] = ()
        self.changed = True
        self._data = memoryview(command)
        self._runs: list[tuple[_Positions, _Positions]] = []
        try:
            self._read_command()
        except IndexError:
            raise UnexpectedAnswer("the answer to a listing is truncated") from None
        except MalformedFields as error:
            raise UnexpectedAnswer(f"the answer to a listing {error}") from None
        self._length = sum(len(starts) for starts, _ in self._runs)
        if not self.changed and self._length:
            raise UnexpectedAnswer("the answer to a listing says that nothing changed, and yet names topics")

    def __len__(self) -> int:
        return self._length

    @property
    def size(self) -> int:
        """Bytes of the encoded command."""
        return len(self._data)

    @cached_property
    def topics(self) -> list[str]:
        """The full names, in the server's order."""
        if not all(isinstance(starts, list) for starts, _ in self._runs):
            names: list[str] = self.column().to_pylist()
            return names
        data = self._data
        try:
            return [
                str(data[start : start + length], "utf-8")
                for starts, lengths in self._runs
                for start, length in zip(starts, lengths, strict=True)
            ]
        except UnicodeDecodeError:
            raise _no_utf8() from None

    def column(self) -> Any:
        """The names as a ``pyarrow.LargeStringArray``; for a large answer call it in a thread."""
        import pyarrow as pa

        try:
            parts = [self._column(starts, lengths) for starts, lengths in self._runs if len(starts)]
        except pa.ArrowInvalid:
            raise _no_utf8() from None
        if len(parts) == 1:
            return parts[0]
        return pa.concat_arrays(parts) if parts else pa.array([], pa.large_string())

    def _column(self, begins: _Positions, sizes: _Positions) -> Any:
        import numpy as np
        import pyarrow as pa

        data = self._data
        starts, lengths = np.asarray(begins, np.int64), np.asarray(sizes, np.int64)
        if len(starts) < 64 or int(lengths.min()) <= _INLINE:
            names = [
                bytes(data[start : start + length])
                for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)
            ]
            return pa.array(names, pa.large_binary()).cast(pa.large_string())
        # Arrow's view of a long string is its length, its first four bytes, the number of its buffer and its offset
        # there: a column of views over the answer as it is, which the cast then packs and checks to be UTF-8.
        views = np.zeros((len(starts), 4), np.int32)
        words: np.ndarray[Any, Any] = np.ndarray((len(data) - 3,), "<i4", buffer=data, strides=(1,))
        views[:, 0] = lengths
        views[:, 1] = words[starts]
        views[:, 3] = starts
        column = pa.Array.from_buffers(
            pa.binary_view(), len(starts), [None, pa.py_buffer(views), pa.py_buffer(data)]
        )
        return column.cast(pa.large_string())

    def _read_command(self) -> None:
        data, position, end = self._data, 0, len(self._data)
        kinds: list[int] = []
        bodies: list[tuple[int, int]] = []
        while position < end:
            number, wire_type, position = _key(data, position)
            start, position = _skip(data, position, end, wire_type)
            if number == 1 and wire_type == 0:
                kinds.append(read_varint(data, start)[0])
            elif number == _BODY and wire_type == 2:
                bodies.append((start, position))
        if kinds != [_BODY] or len(bodies) != 1:
            raise UnexpectedAnswer("the command is not one answer to a listing")
        self._read_body(*bodies[0])

    def _read_body(self, position: int, end: int) -> None:
        data = self._data
        seen: set[int] = set()
        while position < end:
            if data[position] == TAG:
                if len(self._runs) == _MAX_RUNS:
                    raise UnexpectedAnswer(
                        "the answer to a listing has its topics scattered between other fields"
                    )
                starts, lengths, position = _read_run(data, position, end)
                self._runs.append((starts, lengths))
                continue
            number, wire_type, position = _key(data, position)
            start, position = _skip(data, position, end, wire_type)
            if number == WARNING and wire_type == 2 and len(self.warnings) < _MOST_WARNINGS:
                text = bytes(data[start : min(position, start + _LONGEST_WARNING)])
                self.warnings += (text.decode("utf-8", "replace"),)
            if number > 5:
                continue  # a field that is newer than we are
            if number in seen or wire_type != (2 if number in (2, 4) else 0) or number == 2:
                raise UnexpectedAnswer(f"the answer to a listing has a field {number} too many or malformed")
            seen.add(number)
            if number == 1:
                self.request_id = read_varint(data, start)[0]
            elif number == 4:
                self.topics_hash = _hash(data[start:position])
            elif number == 3:
                self.filtered = _flag(data, start)
            else:
                self.changed = _flag(data, start)
        if 1 not in seen:
            raise UnexpectedAnswer("the answer to a listing lacks its request id")


def _read_run(data: memoryview, position: int, end: int) -> tuple[_Positions, _Positions, int]:
    """The starts of the names from ``position`` on, their lengths, and the end of their run."""
    if end - position > _WALKED:
        from broker_core.listing import search_fields

        found = search_fields(data, position, end)
        if found is not None:
            starts, lengths, position = found
            return cast(_Positions, starts), cast(_Positions, lengths), position
    return walk_fields(data, position, end)


def _no_utf8() -> UnexpectedAnswer:
    return UnexpectedAnswer("the answer to a listing has names that are no UTF-8")


def peek_request_id(beginning: bytes | memoryview) -> int | None:
    """The request id of an answer to a listing, a watch or GET_SCHEMA, by its first 32 bytes, if it stands first.

    Else ``None``.
    """
    data = memoryview(beginning)[:32]
    try:
        if bytes(data[:4]) in _ANSWERS:
            _, position = read_varint(data, 4)
            if data[position] == 0x08:
                return read_varint(data, position + 1)[0]
    except (IndexError, MalformedFields, UnexpectedAnswer):
        pass
    return None


def _key(data: memoryview, position: int) -> tuple[int, int, int]:
    key, position = read_varint(data, position)
    if not 8 <= key < 2**32:
        raise UnexpectedAnswer(f"the answer to a listing has a field of the impossible key {key}")
    return key >> 3, key & 7, position


def _skip(data: memoryview, position: int, end: int, wire_type: int) -> tuple[int, int]:
    """The begin and the end of a field's value."""
    start = position
    if wire_type == 0:
        _, position = read_varint(data, position)
    elif wire_type == 2:
        length, start = read_varint(data, position)
        position = start + length
    elif wire_type in (1, 5):
        position += 8 if wire_type == 1 else 4
    else:
        raise UnexpectedAnswer(f"the answer to a listing has a field of wire type {wire_type}")
    if position > end:
        raise UnexpectedAnswer("the answer to a listing is truncated")
    return start, position


def _flag(data: memoryview, position: int) -> bool:
    value, _ = read_varint(data, position)
    if value > 1:
        raise UnexpectedAnswer(f"the answer to a listing has a flag of the value {value}")
    return value == 1


def _hash(data: memoryview) -> str:
    try:
        if len(data) > _MAX_HASH:
            raise UnexpectedAnswer(
                f"the answer to a listing has a topics hash of {counted(len(data), 'byte')}"
            )
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise UnexpectedAnswer("the answer to a listing has a topics hash that is no UTF-8") from None
