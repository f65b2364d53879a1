"""One HTTP connection, with bounds on the time and the size of a request's head.

aiohttp bounds each line of a head. Here the whole head is bounded, in bytes and in time, so that a client that sends it
byte by byte, or in many lines, does not hold memory. Bytes that are no HTTP are answered, but never logged: they may be
credentials, and anybody may send them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from broker_core.errors import Cause
from broker_core.servers.http.api.problem_details import Problem, problem_response

__all__ = ["ServedConnection"]

_log = structlog.get_logger(__name__)

#: Bytes of a head that is not complete.
_MOST_BYTES: Final = 96 * 1024
#: Seconds from its first byte to its last one.
_TIMEOUT: Final = 15.0


class ServedConnection(web.RequestHandler):
    """The protocol of one connection."""

    __slots__ = ("_head_bytes", "_head_timer", "lost")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        #: Called when the connection is over.
        self.lost: Callable[[], None] | None = None

    def data_received(self, data: bytes) -> None:
        # While a request is answered, its body may come, or waiting requests, which aiohttp bounds.
        awaited = self._waiter is not None or self._request_count == 0
        before = self._request_count
        super().data_received(data)
        if not awaited or self._request_count != before:
            self._end_head()
            return
        self._head_bytes += len(data)
        if self._head_bytes > _MOST_BYTES:
            self._refuse("431 Request Header Fields Too Large")
        elif self._head_timer is None and data:
            self._head_timer = self._loop.call_later(_TIMEOUT, self._refuse, "408 Request Timeout")

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_head()
        super().connection_lost(exc)
        if self.lost is not None:
            self.lost()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        _log.debug("bytes are no HTTP", peer=request.remote, error=type(exc).__name__)
        response = problem_response(Problem(400, "these bytes are no request of HTTP/1.1", Cause.BAD_REQUEST))
        response.headers["Cache-Control"] = "no-store"
        response.force_close()
        return response

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: str) -> None:
        self._end_head()
        if self.transport is not None:
            self.transport.write(
                f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )
        self.force_close()
