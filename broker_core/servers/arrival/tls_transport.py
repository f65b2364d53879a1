"""A transport over TLS for protocols of asyncio, on a socket whose handshake is done.

asyncio's own has bytes in three buffers (of the protocol's data, of encrypted data, and of its socket), and counts the
first two only for the protocol; and these buffers keep the size that they once had. Here OpenSSL writes to the socket
itself: bytes that have not gone to the kernel wait here, counted, but for one record of 16 KiB at the most.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from typing import Any, Final, TypeAlias

__all__ = ["TlsTransport"]

_Data: TypeAlias = bytes | bytearray | memoryview

#: Bytes that are encrypted by one call, which also releases the interpreter's lock once.
_PIECE: Final = 128 * 1024
#: Bytes that are encrypted in one turn of the event loop.
_TURN: Final = 256 * 1024
#: Bytes of a record, and records that are read in one turn of the event loop.
_RECORD: Final = 16 * 1024
_RECORDS: Final = 4
#: Bytes that wait before a protocol is paused, if it sets no limit.
_HIGH: Final = 64 * 1024
_BLOCKED: Final = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TlsTransport(asyncio.Transport):
    """The transport of ``protocol``, which is connected at once; ``peername`` is the address of the client.

    As with asyncio's own, ``write`` takes everything, and ``pause_writing`` says when too much waits.
    """

    def __init__(self, sock: ssl.SSLSocket, protocol: asyncio.BaseProtocol, peername: Any) -> None:
        super().__init__(
            {
                "peername": peername,
                "sockname": sock.getsockname(),
                "socket": sock,
                "ssl_object": sock,
                "sslcontext": sock.context,
            }
        )
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._high, self._low = _HIGH, _HIGH // 4
        self._waiting: deque[bytes] = deque()  # each is written by one call, again if need be
        self._size = 0
        self._is_paused = False  # the protocol was asked to write no more
        self._is_reading = False
        self._is_closing = False
        self._is_lost = False
        self._at_end = False  # nothing is written any more, and all that waits goes out
        self._is_writer = False  # the loop calls when the socket can be written
        self._read_blocked = False  # a read waits until the socket can be written
        self.set_protocol(protocol)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol.connection_made(self)
        self.resume_reading()

    # -- reading ----------------------------------------------------------------------------------------------

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._sock)

    def resume_reading(self) -> None:
        if not (self._is_reading or self._is_closing):
            self._is_reading = True
            self._loop.add_reader(self._sock, self._read)

    def _read(self) -> None:
        for _ in range(_RECORDS):
            if not self._is_reading:
                return
            try:
                data = self._sock.recv(_RECORD)
            except ssl.SSLWantReadError:
                return
            except ssl.SSLWantWriteError:  # keys are to be changed
                self._read_blocked = True
                self._watch_for_writing()
                return
            except (OSError, ValueError) as error:
                self._lose(error)
                return
            if not data:
                self._end_of_stream()
                return
            if not self._at_end:  # bytes after our own end cannot be decrypted any more
                try:
                    self._protocol.data_received(data)
                except Exception as error:  # noqa: BLE001 - the protocol is broken, and its state unknown
                    self._loop.call_exception_handler(
                        {"message": "a protocol failed", "exception": error, "transport": self}
                    )
                    self._lose(error)

    def _end_of_stream(self) -> None:
        if self._protocol.eof_received():
            self.pause_reading()
        else:
            self.close()

    # -- writing ----------------------------------------------------------------------------------------------

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = _HIGH if low is None else 4 * low
        self._high, self._low = high, high // 4 if low is None else low
        self._pause_or_resume()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return self._size

    def write(self, data: _Data) -> None:
        if self._at_end:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_closing or not data:
            return
        written = 0
        if not self._waiting:
            written = self._write_now(memoryview(data))
            if written == len(data) or self._is_closing:
                return
        rest = memoryview(data)[written:]
        for start in range(0, len(rest), _PIECE):
            self._waiting.append(bytes(rest[start : start + _PIECE]))
        self._size += len(rest)
        self._watch_for_writing()
        self._pause_or_resume()

    def _write_now(self, data: memoryview) -> int:
        """Write as much as possible in this turn; returns how many bytes."""
        written = 0
        while written < len(data) and written < _TURN:
            piece = data[written : written + _PIECE]
            if not self._send(piece):
                break
            written += len(piece)
        return written

    def _send(self, piece: _Data) -> bool:
        """Encrypt and write a piece; false if the socket does not take all: then the same piece must be sent again."""
        try:
            self._sock.send(piece)
        except _BLOCKED:
            return False
        except (OSError, ValueError) as error:
            self._lose(error)
            return False
        return True

    def _writable(self) -> None:
        if self._read_blocked:
            self._read_blocked = False
            self._read()
        written = 0
        while self._waiting and written < _TURN and self._send(self._waiting[0]):
            written += len(self._waiting[0])
            self._size -= len(self._waiting.popleft())
        if self._is_lost:
            return
        if not (self._waiting or self._read_blocked):
            self._is_writer = False
            self._loop.remove_writer(self._sock)
        self._pause_or_resume()  # which may write more
        if not self._waiting:
            if self._is_closing:
                self._finish()
            elif self._at_end:
                self._say_end()

    def _watch_for_writing(self) -> None:
        if not self._is_writer:
            self._is_writer = True
            self._loop.add_writer(self._sock, self._writable)

    def _pause_or_resume(self) -> None:
        if self._is_paused:
            if self._size <= self._low:
                self._is_paused = False
                self._protocol.resume_writing()
        elif self._size > self._high:
            self._is_paused = True
            self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Announce the end of our data. What the client sends after this is not read any more, but for its end."""
        if self._is_closing or self._at_end:
            return
        self._at_end = True
        if not self._waiting:
            self._say_end()

    def _say_end(self) -> None:
        self._say_goodbye()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    # -- the end ----------------------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Close once all that waits has left."""
        if self._is_closing:
            return
        self.pause_reading()
        self._is_closing = True
        if not self._waiting:
            self._loop.call_soon(self._finish)

    def abort(self) -> None:
        """Close now."""
        self._lose(None)

    def _finish(self) -> None:
        if not self._is_lost:
            if not self._at_end:
                self._say_goodbye()
            self._lose(None)

    def _say_goodbye(self) -> None:
        """Send the alert that this is the end, and no cut, without waiting for the client's."""
        with contextlib.suppress(OSError, ValueError):
            self._sock.unwrap()

    def _lose(self, error: Exception | None) -> None:
        if self._is_lost:
            return
        self.pause_reading()
        self._is_closing = self._is_lost = True
        self._waiting.clear()
        self._size = 0
        if self._is_writer:
            self._is_writer = False
            self._loop.remove_writer(self._sock)
        self._loop.call_soon(self._report_lost, error)

    def _report_lost(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._sock.close()
