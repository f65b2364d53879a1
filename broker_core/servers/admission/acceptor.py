"""Listening on an address: a few connections at a time, and a pause if there is no file descriptor left.

The event loop's own servers try a thousand times in a row to accept without a descriptor, with a traceback in the log
for each.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Any, Final

import structlog

__all__ = ["Acceptor"]

_log = structlog.get_logger(__name__)

#: The kernel's own bound. Thousands of clients that come back at once wait here, and not among the served ones.
_BACKLOG: Final = 4096
#: Seconds of rest after each connection of a full batch. A server admits some 2,000 clients a second; taken faster,
#: they would all be served in the same turns of the event loop, in front of the PINGs of the others.
_REST: Final = 0.001
#: Seconds until accepting is tried again after there was no descriptor.
_PAUSE: Final = 0.2
#: The errors of a lack of descriptors or memory, which others give back.
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Hands each connection to ``accepted(socket, peer)``, with a socket that does not block; from one loop's thread.

    ``at_once`` is how many are accepted in one turn of the event loop: then, accepting rests for about as long as it
    takes to hear so many clients. ``on_pause`` is called when accepting pauses for want of descriptors.
    """

    def __init__(
        self,
        accepted: Callable[[socket.socket, Any], None],
        *,
        at_once: int,
        on_pause: Callable[[], None] = lambda: None,
    ) -> None:
        self._accepted = accepted
        self._at_once = at_once
        self._on_pause = on_pause
        self._loop: asyncio.AbstractEventLoop
        self._resting: dict[socket.socket, asyncio.TimerHandle] = {}
        self.sockets: list[socket.socket] = []

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Listen on all addresses of ``host``; port 0 is a free one. Returns the first.

        :exc:`OSError` if one of them cannot be had.
        """
        self._loop = loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                self.sockets.append(_listening(family, kind, protocol, address))
        except BaseException:
            self.close()
            raise
        for sock in self.sockets:
            loop.add_reader(sock, self._accept, sock)
        name = self.sockets[0].getsockname()
        return str(name[0]), int(name[1])

    def listen_on(self, sock: socket.socket) -> None:
        """Accept from a socket that listens already and does not block; :meth:`close` closes it."""
        self._loop = asyncio.get_running_loop()
        self.sockets.append(sock)
        self._loop.add_reader(sock, self._accept, sock)

    def close(self) -> None:
        """Stop accepting. May be called again."""
        for timer in self._resting.values():
            timer.cancel()
        self._resting.clear()
        sockets, self.sockets = self.sockets, []
        for sock in sockets:
            if sock.fileno() >= 0:
                self._loop.remove_reader(sock)
                sock.close()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(self._at_once):
            try:
                sock, peer = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(listening, error)
                    return
                _log.warning("a connection could not be accepted", error=str(error))
                continue
            sock.setblocking(False)
            self._accepted(sock, peer)
            if listening.fileno() < 0:
                return  # the accepted connection has closed it
        self._rest(listening, self._at_once * _REST)

    def _rest(self, listening: socket.socket, seconds: float) -> None:
        self._loop.remove_reader(listening)
        self._resting[listening] = self._loop.call_later(seconds, self._go_on, listening)

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        self._rest(listening, _PAUSE)
        self._on_pause()
        _log.warning(
            "no more connections can be accepted for now",
            error=str(error),
            listen=str(listening.getsockname()),
        )

    def _go_on(self, listening: socket.socket) -> None:
        del self._resting[listening]
        self._loop.add_reader(listening, self._accept, listening)


def _listening(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.setblocking(False)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock
