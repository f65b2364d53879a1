"""The last frame of a connection: the client gets to read it, then the connection is closed.

If a socket is closed with unread bytes from the client, the system resets it, and the reset drops what the client has
not read. So after the frame the server only ends its own direction, and closes when the client has, or a second later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["LastFrame"]

#: Seconds for a client to read the frame and to close.
_LINGER: Final = 1.0
#: Bytes that a client may send meanwhile.
_MOST: Final = 64 * 1024


class LastFrame:
    """Sends ``frame`` by ``send``, then ends the connection; ``is_idle`` says whether all that was sent has left."""

    __slots__ = ("_frame", "_is_idle", "_is_sent", "_loop", "_received", "_send", "_timer", "_transport")

    def __init__(
        self,
        transport: asyncio.Transport,
        frame: bytes,
        *,
        send: Callable[[bytes], None],
        is_idle: Callable[[], bool],
    ) -> None:
        self._transport = transport
        self._frame = frame
        self._send = send
        self._is_idle = is_idle
        self._is_sent = False
        self._received = 0
        self._loop = asyncio.get_running_loop()
        # Not now: the connection may be in the midst of a call from a transport.
        self._timer: asyncio.Handle = self._loop.call_soon(self._send_frame)

    def received(self, size: int) -> None:
        """Count bytes that came and are not read; too many end the connection."""
        self._received += size
        if self._received > _MOST:
            self._transport.abort()

    def left(self) -> None:
        """End the sending side: all bytes have left, and nothing more follows."""
        transport = self._transport
        if not self._is_sent or not self._is_idle() or transport.is_closing():
            return
        if transport.can_write_eof():
            transport.write_eof()
        else:
            transport.close()

    def close(self) -> None:
        """Stop waiting for the client: the connection is over."""
        self._timer.cancel()

    def _send_frame(self) -> None:
        if self._transport.is_closing():
            return
        self._send(self._frame)
        self._is_sent = True
        self._timer = self._loop.call_later(_LINGER, self._transport.abort)
        self.left()
