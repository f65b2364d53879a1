"""Two hundred clients that ask for everything at once, half of them reading slowly, while PING is being answered."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import google_crc32c

from tests.benchmarks.ping import pinged, pong_figures
from tests.benchmarks.processes import resident, resident_peak
from tests.benchmarks.wire_client import (
    ERROR,
    GET_TOPICS_RESPONSE,
    PING,
    command_type,
    connect_frame,
    get_topics_frame,
    pong_frame,
    read_answer,
)

__all__ = ["crowd"]

_SIZE = struct.Struct(">I")
_CHUNK = 1 << 20
_SLOW_CHUNK = 1 << 16  # each slow reader takes this much ...
_SLOW_PAUSE = 0.025  # ... this often: 2.6 MB/s, half a minute for 65 MB
_HEAD = 10  # of a frame: two sizes and the type of its command
_KEPT = 1 << 12  # of each frame: enough for its type and for the whole of an error
_CHECKED = 10  # every tenth reader sums up what it reads
_GIVE_UP = 300.0


@dataclass(slots=True)
class _Reader:
    connection: socket.socket
    slow: bool
    checked: bool
    kept: bytearray = field(default_factory=bytearray)
    total: int = 0
    have: int = 0
    crc: int = 0
    outcome: str | None = None

    def take(self, data: memoryview) -> None:
        """Look at the next bytes: PINGs, the one frame that is awaited, and perhaps a PING behind it."""
        if self.total:
            data = data[: self.total - self.have]
        self.have += len(data)
        if len(self.kept) < _KEPT:
            self.kept += data[: _KEPT - len(self.kept)]
            self._skip_pings()
        if self.total == 0 and len(self.kept) >= _HEAD:
            self.total = 4 + _SIZE.unpack_from(self.kept)[0]
            data = data[: len(data) - max(0, self.have - self.total)]
            self.have = min(self.have, self.total)
        if self.checked:
            self.crc = google_crc32c.extend(self.crc, bytes(data))
        if self.total and self.have == self.total:
            self.outcome = self._read_outcome()

    def _skip_pings(self) -> None:
        while len(self.kept) >= _HEAD and command_type(memoryview(self.kept)) == PING:
            length = 4 + _SIZE.unpack_from(self.kept)[0]
            del self.kept[:length]
            self.have -= length
            self.connection.sendall(pong_frame())
            self.checked = False  # its sum has a PING in it

    def _read_outcome(self) -> str:
        frame = memoryview(self.kept)
        kind = command_type(frame)
        if kind == GET_TOPICS_RESPONSE:
            return "listing"
        if kind == ERROR:
            answer = read_answer(frame[: self.total])
            return "TooManyRequests" if answer.error_code == 14 else str(answer.error)
        return f"command {kind}"


def crowd(address: tuple[str, int], pid: int, namespace: str, clients: int = 200) -> dict[str, Any]:
    """Let ``clients`` ask for all topics of ``namespace`` at the same moment, and read every byte they get.

    ``outcomes`` counts what became of them: ``listing``, ``TooManyRequests``, other errors, ``closed``.
    """
    before = resident(pid)
    readers = [_connect(address, number) for number in range(clients)]
    question = get_topics_frame(1, namespace)  # one request id, so that all answers are the same bytes
    with pinged(address) as felt, selectors.DefaultSelector() as selector:
        begun = time.perf_counter()
        for reader in readers:
            reader.connection.sendall(question)
            if not reader.slow:
                selector.register(reader.connection, selectors.EVENT_READ, reader)
        try:
            moved = _read_all(readers, selector, begun)
            seconds = time.perf_counter() - begun
        finally:
            for reader in readers:
                reader.connection.close()
    sums = {
        (reader.total, reader.crc) for reader in readers if reader.checked and reader.outcome == "listing"
    }
    sizes = {reader.total for reader in readers if reader.outcome == "listing"}
    return {
        "clients": clients,
        "slow": sum(reader.slow for reader in readers),
        "outcomes": dict(Counter(reader.outcome or "nothing" for reader in readers)),
        "different_answers": max(len(sums), len(sizes)),
        "seconds": seconds,
        "bytes": moved,
        "resident_before": before,
        "resident_peak": resident_peak(pid),
        **pong_figures(felt),
    }


def _connect(address: tuple[str, int], number: int) -> _Reader:
    connection = socket.create_connection(address, 60)
    connection.sendall(connect_frame())
    connection.recv(_KEPT)  # CONNECTED comes whole: it is the first thing on this connection, and small
    connection.setblocking(False)
    return _Reader(connection, slow=number % 2 == 1, checked=number % _CHECKED < 2)


def _read_all(readers: list[_Reader], selector: selectors.BaseSelector, begun: float) -> int:
    view = memoryview(bytearray(_CHUNK))
    waiting = {id(reader) for reader in readers}
    slow = [reader for reader in readers if reader.slow]
    moved = 0
    tick = begun
    while waiting:
        for key, _ in selector.select(max(0.0, tick - time.perf_counter()) if slow else 1.0):
            reader: _Reader = key.data
            moved += _read_some(reader, view)
            if reader.outcome is not None:
                selector.unregister(reader.connection)
                waiting.discard(id(reader))
        now = time.perf_counter()
        if slow and now >= tick:
            tick = now + _SLOW_PAUSE
            for reader in slow:
                moved += _read_some(reader, view[:_SLOW_CHUNK])
                if reader.outcome is not None:
                    waiting.discard(id(reader))
            slow = [reader for reader in slow if reader.outcome is None]
        if now - begun > _GIVE_UP:
            break
    return moved


def _read_some(reader: _Reader, view: memoryview) -> int:
    try:
        count = reader.connection.recv_into(view)
    except BlockingIOError:
        return 0
    except ConnectionError:
        count = 0
    if count == 0:
        reader.outcome = f"closed after {reader.have} bytes"
    else:
        reader.take(view[:count])
    return count
