"""The whole listing as the answer to one request, in the form that the client prefers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from aiohttp import web

from broker_core.listing import LineFeedInName
from broker_core.pipeline import Answer
from broker_core.plugin_api import ListingRequest
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.body_writer import RenderedBody, write_body
from broker_core.servers.http.api.etag import KNOWN, EntityTags, listing_etag
from broker_core.servers.http.api.listing_problems import (
    require_filtered,
    sending,
    warning_headers,
    warning_members,
)
from broker_core.servers.http.api.negotiation import VARY
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from broker_core.servers.http.api.topics.forms import ListingEnd, names_body

__all__ = ["FILTERED", "answer_to", "listing_headers", "whole_listing", "write_listing"]

#: The header that says whether the server applied the pattern, for the forms that have no place for it.
FILTERED: Final = "Topics-Filtered"


async def whole_listing(
    request: ApiRequest, question: ListingRequest, uncompiled: str | None, most: int, media_type: str
) -> web.StreamResponse | None:
    """The names in the order of the topics hash; 304 if the client has them already.

    ``None`` if there are more than ``most``.
    """
    known: EntityTags | None = request.values[KNOWN.name]
    if known is not None and known.lone is not None:
        question = replace(question, topics_hash=known.lone)
    answer = await answer_to(request, question, uncompiled)
    with sending(answer):
        headers = listing_headers(answer) | {"ETag": listing_etag(answer.topics_hash)}
        selection = answer.selection
        if selection is None or (known is not None and known.matches(headers["ETag"], weakly=True)):
            return web.Response(status=304, headers=headers)
        if len(selection) > most:
            return None
        end = ListingEnd(
            filtered=answer.filtered,
            next=None,
            topics_hash=answer.topics_hash,
            **warning_members(answer.warnings),
        )
        body = names_body(media_type, selection, selection.fields_size, end)
        return await write_listing(request, body, headers, answer)


def listing_headers(answer: Answer) -> dict[str, str]:
    """The headers of a listing: it is for its asker, and may be kept for later conditional requests."""
    filtered = "true" if answer.filtered else "false"
    headers = {"Vary": VARY, "Cache-Control": "private, no-cache", FILTERED: filtered}
    return headers | warning_headers(answer.warnings)


async def write_listing(
    request: ApiRequest, body: RenderedBody, headers: dict[str, str], answer: Answer
) -> web.StreamResponse:
    """Answer with this body, which is made of ``answer``; the error 406 if a name is no line of text."""
    leases = request.services.permits.leases
    try:
        return await write_body(request, body, headers, holds=lambda budget: answer.holds(budget, leases))
    except LineFeedInName as error:
        raise refused(406, f"{error}: ask for JSON, NDJSON or an Arrow stream") from None


async def answer_to(request: ApiRequest, question: ListingRequest, uncompiled: str | None) -> Answer:
    """The pipeline's answer, at once if possible.

    Raises :exc:`~broker_core.errors.ListingFailed`, and the error 400 for an unfiltered answer, unless the client asks
    for that.
    """
    pipeline = request.services.pipeline
    answer = pipeline.answer_now(question) if uncompiled is None else None
    answer = answer or await pipeline.answer(question, topics_pattern=uncompiled)
    try:
        require_filtered(request, answer.warnings)
    except RequestRefused:
        with sending(answer):
            raise
    return answer
