"""The whole listing as the answer to one request, in the form that the client prefers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from aiohttp import web

from broker_core.listing.rendered.names import LineFeedInName
from broker_core.pipeline import Answer
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.body_writer import write_body
from broker_core.servers.http.api.etag import etag, held_etags
from broker_core.servers.http.api.negotiation import VARY
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.topics.forms import ListingEnd, names_body

__all__ = ["FILTERED", "LISTING_HEADERS", "answer_to", "whole_listing"]

#: The header that says whether the server applied the pattern, for the forms that have no place for it.
FILTERED: Final = "Topics-Filtered"
#: Of every listing: it is for who asked, and may be kept to be asked about again.
LISTING_HEADERS: Final = {"Vary": VARY, "Cache-Control": "private, no-cache"}


async def whole_listing(
    request: ApiRequest, question: ListingRequest, uncompiled: str | None, media_type: str
) -> web.StreamResponse:
    """The names in the order of the topics hash; 304 where the client has them already."""
    held = held_etags(request.http)
    if len(held) == 1:
        question = replace(question, topics_hash=held[0])
    answer = await answer_to(request, question, uncompiled)
    try:
        headers = LISTING_HEADERS | {"ETag": etag(answer.topics_hash)}
        selection = answer.selection
        if selection is None or answer.topics_hash in held:
            return web.Response(status=304, headers=headers)
        headers[FILTERED] = "true" if answer.filtered else "false"
        end = ListingEnd(answer.filtered, answer.topics_hash)
        body = names_body(media_type, selection, selection.fields_size, end)
        try:
            return await write_body(request, body, headers)
        except LineFeedInName as error:
            raise refused(406, f"{error}: ask for JSON, NDJSON or an Arrow stream") from None
    finally:
        answer.release()


async def answer_to(request: ApiRequest, question: ListingRequest, uncompiled: str | None) -> Answer:
    """The pipeline's answer, at once where it can be. Raises :exc:`~broker_core.errors.ListingFailed`."""
    pipeline = request.services.pipeline
    answer = pipeline.answer_now(question) if uncompiled is None else None
    return answer or await pipeline.answer(question, topics_pattern=uncompiled)
