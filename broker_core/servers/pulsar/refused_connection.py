"""A connection that got no place: its client gets an error, in answer to its CONNECT, and it is closed.

It holds a descriptor meanwhile, so that takes a second at most, for a few of them at a time; the others get the error
at once, which a client may miss: if it sends after the end, the system drops what it has not read.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from broker_core.errors import ServerError
from broker_core.wire.pulsar import commands

__all__ = ["MESSAGES", "RefusedConnection", "RefusedConnections"]

#: The text for a client, by the reason in the metrics.
MESSAGES: Final = {
    "connections": "Reached the maximum number of connections (limits.connections)",
    "address": "Reached the maximum number of connections of one address (limits.connections_per_address)",
    "files": "Reached the maximum number of connections (the limit of open files)",
}
_FRAMES: Final = {
    reason: commands.error(commands.CONNECTION_REQUEST_ID, ServerError.NotAllowedError, message)
    for reason, message in MESSAGES.items()
}

#: Seconds for a client to send CONNECT, to read the answer and to close.
_DEADLINE: Final = 1.0
#: Bytes that are read of it.
_MOST: Final = 64 * 1024


class RefusedConnection(asyncio.Protocol):
    """The protocol of a refused connection; ``ended`` is called with it when it is over."""

    def __init__(self, reason: str, ended: Callable[[RefusedConnection], None]) -> None:
        self._frame = _FRAMES[reason]
        self._ended = ended
        self._is_sent = False
        self._received = 0
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._timer = asyncio.get_running_loop().call_later(_DEADLINE, self._end)

    def data_received(self, data: bytes) -> None:
        self._send_frame()
        self._received += len(data)
        if self._received > _MOST:
            self._transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        self._timer.cancel()
        self._ended(self)

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _send_frame(self) -> None:
        if not self._is_sent:
            self._is_sent = True
            self._transport.write(self._frame)
            self._transport.write_eof()

    def _end(self) -> None:
        self._send_frame()
        self._transport.abort()


class RefusedConnections:
    """Refused connections of one server, ``most`` at a time (:class:`broker_core.servers.arrival.Refusals`)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[asyncio.Protocol] = set()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, reason: str) -> asyncio.Protocol | None:
        if len(self._open) >= self._most:
            return None
        refusal = RefusedConnection(reason, self._open.discard)
        self._open.add(refusal)
        return refusal

    def forget(self, refusal: asyncio.Protocol) -> None:
        self._open.discard(refusal)

    def at_once(self, sock: socket.socket, reason: str) -> None:
        with sock:
            try:
                sock.recv(_MOST)  # its CONNECT, if that is here already
            except OSError:
                pass
            try:
                sock.send(_FRAMES[reason])
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    async def close(self) -> None:
        """Close all refused connections."""
        while self._open:
            for refusal in list(self._open):
                assert isinstance(refusal, RefusedConnection)
                refusal.abort()
            await asyncio.sleep(0)
