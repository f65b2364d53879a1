"""Responses in JSON, and those of errors: each has a status and says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from aiohttp import hdrs, web

from broker_core.errors import ListingFailed
from broker_core.redaction.quoted import cut_short

__all__ = ["errors_in_json", "json_response"]

_log = structlog.get_logger(__name__)


def json_response(status: int, content: dict[str, Any]) -> web.Response:
    """A response of this status with one JSON object."""
    return web.Response(status=status, text=json.dumps(content) + "\n", content_type="application/json")


@web.middleware
async def errors_in_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Whatever a handler raises, as a response: a middleware."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return json_response(404, {"error": f"there is nothing at {cut_short(request.path)}"})
    except web.HTTPMethodNotAllowed as error:
        allowed = ", ".join(sorted(error.allowed_methods))
        response = json_response(
            405, {"error": f"{cut_short(request.path)} does not take {request.method}, only {allowed}"}
        )
        response.headers[hdrs.ALLOW] = allowed
        return response
    except web.HTTPException as error:
        response = json_response(error.status, {"error": error.reason})
        for challenge in error.headers.getall(hdrs.WWW_AUTHENTICATE, ()):
            response.headers.add(hdrs.WWW_AUTHENTICATE, challenge)
        return response
    except ListingFailed as failure:
        return json_response(failure.cause.http, {"error": failure.message})
    except Exception:  # noqa: BLE001 - whatever a metric raises, it is our fault and not the end of the connection
        _log.exception("an HTTP request failed", path=request.path)
        return json_response(500, {"error": "internal error; the log says more"})
