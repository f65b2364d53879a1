"""Responses in JSON."""

from __future__ import annotations

from aiohttp import web

from broker_core.compact_json import ascii_json

__all__ = ["json_response"]


def json_response(status: int, content: object) -> web.Response:
    """A response of this status with this JSON."""
    return web.Response(status=status, text=ascii_json(content) + "\n", content_type="application/json")
