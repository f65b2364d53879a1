"""Responses in JSON."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

__all__ = ["json_response"]


def json_response(status: int, content: dict[str, Any]) -> web.Response:
    """A response of this status with one JSON object."""
    return web.Response(status=status, text=json.dumps(content) + "\n", content_type="application/json")
