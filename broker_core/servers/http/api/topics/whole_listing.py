"""The whole listing as the answer to one request."""

from __future__ import annotations

import json

from aiohttp import web

from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.http.api.api_request import ApiRequest

__all__ = ["whole_listing"]


async def whole_listing(
    request: ApiRequest, question: ListingRequest, uncompiled: str | None
) -> web.StreamResponse:
    """The listing as one JSON object."""
    answer = await request.services.pipeline.answer(question, topics_pattern=uncompiled)
    try:
        content = {"items": answer.names.to_pylist(), "filtered": answer.filtered, "next": None}
        return web.Response(text=json.dumps(content) + "\n", content_type="application/json")
    finally:
        answer.release()
