"""Waiting for the first record of TLS, without reading it: a client that sends none holds a socket and a timer only."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Final

from broker_core.servers.arrival.refused_arrival import RefusedArrival
from broker_core.servers.arrival.socket_waits import peeked, readable

__all__ = ["client_hello"]

#: Bytes of the head of a record: its type, its version, its length.
_HEAD: Final = 5
_HANDSHAKE: Final = 0x16
#: A fatal alert, unexpected_message: a client that speaks no TLS can report from it that the port does.
_ALERT: Final = b"\x15\x03\x01\x00\x02\x02\x0a"
#: Bytes of a record, at most: RFC 8446.
_LARGEST: Final = 2**14

#: Seconds until a socket is looked at again that was said to have more than it has; twice as many each time.
_PAUSE: Final = 0.02


async def client_hello(sock: socket.socket) -> None:
    """Return once the whole first record is there. Raises :exc:`RefusedArrival` if it cannot be one of TLS."""
    needed, marked, pause = _HEAD, 1, _PAUSE
    try:
        while True:
            seen = await peeked(sock, needed, "the handshake")
            try:
                _check(seen)
            except RefusedArrival:
                with suppress(OSError):
                    sock.send(_ALERT)
                    sock.recv(
                        _LARGEST
                    )  # closed with bytes that nobody read, it would be reset, and the alert lost
                raise
            if len(seen) == needed == _HEAD:
                needed += int.from_bytes(seen[3:5], "big")
            elif len(seen) == needed:
                break
            elif marked != needed:
                # The system says no more that the socket is readable until so much has come.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, needed)
                marked = needed
                await readable(sock)
            else:  # it says so nevertheless: the client sends no more, or the system lacks memory
                await asyncio.sleep(pause)
                pause *= 2
        if marked != 1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    except OSError as error:
        raise RefusedArrival("closed", f"closed before the handshake: {error}") from None


def _check(seen: bytes) -> None:
    """Check that these are the first bytes of a handshake."""
    if seen[0] != _HANDSHAKE or (len(seen) > 1 and seen[1] != 3):
        raise RefusedArrival("not_tls", "what the client sends is not TLS")
    if len(seen) >= _HEAD and not 0 < int.from_bytes(seen[3:5], "big") <= _LARGEST:
        raise RefusedArrival("not_tls", "what the client sends is not TLS")
