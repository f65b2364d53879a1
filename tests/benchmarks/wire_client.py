"""A raw client with almost no cost: hand-made frames, and answers read into one reused buffer.

It shares no code with the server, so neither its speed nor its mistakes are the server's.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "Answer",
    "FrameClient",
    "RawClient",
    "connect_frame",
    "get_topics_frame",
    "lookup_frame",
    "partitions_frame",
    "ping_frame",
    "pong_frame",
    "read_answer",
]

# BaseCommand.Type; the number of the type is the number of the field that holds the command.
CONNECT, CONNECTED, ERROR, PING, PONG, GET_TOPICS, GET_TOPICS_RESPONSE = 2, 3, 14, 18, 19, 32, 33
PARTITIONED_METADATA, LOOKUP = 21, 23

_CLIENT_VERSION = "broker-core-bench"
_PROTOCOL_VERSION = 21
_SIZE = struct.Struct(">I")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _frame(kind: int, body: bytes) -> bytes:
    command = _number(1, kind) + _text(kind, body)
    return _SIZE.pack(len(command) + 4) + _SIZE.pack(len(command)) + command


def connect_frame(token: str = "") -> bytes:
    """CONNECT, with a token if there is one."""
    fields = _text(1, _CLIENT_VERSION.encode())
    if token:
        fields += _text(3, token.encode())
    fields += _number(4, _PROTOCOL_VERSION)
    if token:
        fields += _text(5, b"token")
    return _frame(CONNECT, fields)


def ping_frame() -> bytes:
    """PING."""
    return _frame(PING, b"")


def pong_frame() -> bytes:
    """PONG."""
    return _frame(PONG, b"")


def get_topics_frame(
    request_id: int,
    namespace: str,
    pattern: str | None = None,
    topics_hash: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> bytes:
    """GET_TOPICS_OF_NAMESPACE of the persistent topics."""
    body = _number(1, request_id) + _text(2, namespace.encode()) + _number(3, 0)
    if pattern is not None:
        body += _text(4, pattern.encode())
    if topics_hash is not None:
        body += _text(5, topics_hash.encode())
    for key, value in (properties or {}).items():
        body += _text(6, _text(1, key.encode()) + _text(2, value.encode()))
    return _frame(GET_TOPICS, body)


def partitions_frame(request_id: int, topic: str) -> bytes:
    """PARTITIONED_METADATA of a topic."""
    return _frame(PARTITIONED_METADATA, _text(1, topic.encode()) + _number(2, request_id))


def lookup_frame(request_id: int, topic: str) -> bytes:
    """LOOKUP of a topic."""
    return _frame(LOOKUP, _text(1, topic.encode()) + _number(2, request_id))


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: ``size`` of the frame in bytes, and its fields; ``error`` is ``code: text`` of a CommandError."""

    size: int
    topics: int = 0
    filtered: bool = False
    topics_hash: str | None = None
    changed: bool = True
    error: str | None = None
    error_code: int | None = None


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at ``at`` and its end."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def command_type(frame: memoryview) -> int:
    """The type of the command in a whole frame."""
    return read_varint(frame, 9)[0]  # two lengths, then the tag of field 1


def read_answer(frame: memoryview) -> Answer:
    """Read a whole frame with GET_TOPICS_RESPONSE or ERROR, topic by topic: never inside of a measurement."""
    kind, at = read_varint(frame, 9)
    if kind not in (GET_TOPICS_RESPONSE, ERROR):
        raise ValueError(f"not an answer to GET_TOPICS: command type {kind}")
    _tag, at = read_varint(frame, at)
    _length, at = read_varint(frame, at)
    topics = 0
    numbers: dict[int, int] = {}
    texts: dict[int, str] = {}
    end = len(frame)
    while at < end:
        tag, at = read_varint(frame, at)
        value, at = read_varint(frame, at)
        if tag & 7 == 2:
            if kind == GET_TOPICS_RESPONSE and tag >> 3 == 2:
                topics += 1
            else:
                texts[tag >> 3] = bytes(frame[at : at + value]).decode()
            at += value
        else:
            numbers[tag >> 3] = value
    if kind == ERROR:
        return Answer(len(frame), error=f"{numbers[2]}: {texts.get(3, '')}", error_code=numbers[2])
    return Answer(
        len(frame),
        topics=topics,
        filtered=bool(numbers.get(3, 0)),
        topics_hash=texts.get(4),
        changed=bool(numbers.get(5, 1)),
    )


class RawClient:
    """One blocking connection; ``capacity`` bounds the largest answer. Not for threads."""

    def __init__(
        self, address: tuple[str, int], capacity: int = 1 << 16, timeout: float = 120.0, *, token: str = ""
    ) -> None:
        self._socket = socket.create_connection(address, timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Touched once here, so that no page fault of ours is measured.
        self._buffer = bytearray(b"\x01") * capacity
        self._view = memoryview(self._buffer)
        self._behind = b""
        if command_type(self.ask(connect_frame(token))) != CONNECTED:
            raise ConnectionError("the server did not answer CONNECT with CONNECTED")

    def ask(self, frame: bytes) -> memoryview:
        """Send one frame and return the next frame that is no PING; valid until the next call."""
        self.send(frame)
        return self.receive()

    def send(self, frames: bytes) -> None:
        """Send frames, whose answers :meth:`receive` gives one by one."""
        self._socket.sendall(frames)

    def receive(self) -> memoryview:
        """The next frame that is no PING; valid until the next call."""
        while True:
            answer = self._receive()
            if len(answer) < 32 and command_type(answer) == PING:
                self._socket.sendall(pong_frame())
                continue
            return answer

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self) -> memoryview:
        view = self._view
        # A PING of the server may have come together with the last answer.
        have = len(self._behind)
        view[:have] = self._behind
        need = 4
        while True:
            if need == 4 and have >= 4:
                need = 4 + _SIZE.unpack_from(view)[0]
                if need > len(view):
                    raise ValueError(f"an answer of {need} bytes is more than this client reads")
            if have >= need > 4:
                self._behind = bytes(view[need:have])
                return view[:need]
            # Never beyond this frame once its length is known; the first read takes a small answer whole.
            count = self._socket.recv_into(view[have:] if need == 4 else view[have:need])
            if count == 0:
                raise ConnectionError("the server closed the connection")
            have += count


class FrameClient:
    """One of many connections that a selector waits for; from an address of its own with ``source``. Small answers."""

    def __init__(self, address: tuple[str, int], source: str = "") -> None:
        self.socket = socket.create_connection(address, 60, (source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._have = bytearray()
        self.socket.sendall(connect_frame())
        while not self.frames():
            pass

    def frames(self) -> list[bytes]:
        """The frames that some more bytes complete; without PINGs, which are answered."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._have += data
        found = []
        while len(self._have) >= 4 and len(self._have) >= (size := 4 + _SIZE.unpack_from(self._have)[0]):
            frame = bytes(self._have[:size])
            del self._have[:size]
            if command_type(memoryview(frame)) == PING:
                self.socket.sendall(pong_frame())
            else:
                found.append(frame)
        return found

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()
