"""The request of the HTTP server: which connection it came by, and headers that all responses have."""

from __future__ import annotations

from typing import Any

from aiohttp import hdrs, web

from broker_core.access import Client

__all__ = ["ServedRequest", "client_of"]


class ServedRequest(web.Request):
    """Request with a response that names no version of Python or aiohttp and by default is kept by no cache.

    Pages of other sites cannot include the response as a script or an image.
    """

    ATTRS = web.Request.ATTRS | {"connection"}
    #: The object that stands for its connection.
    connection: Client | None = None

    def __init__(self, message: Any, *arguments: Any, **options: Any) -> None:
        if not message.headers.get(hdrs.EXPECT, "").isascii():
            # aiohttp quotes it in the error 417 of paths that are not served, and cannot encode bytes that are no
            # UTF-8.
            headers = message.headers.copy()
            headers[hdrs.EXPECT] = "unknown"
            message = message._replace(headers=type(message.headers)(headers))
        super().__init__(message, *arguments, **options)

    async def _prepare_hook(self, resp: web.StreamResponse) -> None:
        await super()._prepare_hook(resp)
        resp.headers.popall(hdrs.SERVER, None)
        resp.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
        resp.headers.setdefault("X-Content-Type-Options", "nosniff")
        resp.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")


def client_of(request: web.Request) -> Client | None:
    """The client whose connection a request came by; ``None`` if that is over."""
    return request.connection if isinstance(request, ServedRequest) else None
