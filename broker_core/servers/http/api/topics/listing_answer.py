"""The answer of a listing: asked of the pipeline, in the form that the client prefers, with the headers of a listing.

The forms are JSON, lines of JSON, text, and an Arrow stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final

import pyarrow as pa
from aiohttp import web
from pydantic import Field

from broker_core.compact_json import ascii_json
from broker_core.listing import (
    BlockSize,
    Details,
    LineFeedInName,
    RenderedNames,
    detail_arrow,
    detail_json_items,
    detail_ndjson,
    detail_size,
    names_arrow,
    names_json_items,
    names_ndjson,
    names_text,
)
from broker_core.pipeline import Answer
from broker_core.plugin_api import ListingRequest
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.body_writer import RenderedBody, write_body
from broker_core.servers.http.api.etag import KNOWN, EntityTags
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.listing_problems import (
    require_filtered,
    sending,
    warning_headers,
    warning_members,
)
from broker_core.servers.http.api.negotiation import VARY
from broker_core.servers.http.api.problem_details import RequestRefused, refused

__all__ = [
    "ARROW",
    "DETAILS",
    "FILTERED",
    "JSON",
    "NAMES",
    "NDJSON",
    "TEXT",
    "ListingEnd",
    "answer_to",
    "details_body",
    "has_listing",
    "listing_headers",
    "names_body",
    "whole_listing",
    "write_listing",
]

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
TEXT: Final = "text/plain"
ARROW: Final = "application/vnd.apache.arrow.stream"


class PlanObject(JsonObject):
    """Way in which a pattern was applied."""

    how: str = Field(
        description="`none` (no pattern), `all`, `literal`, `range`, `scan`, `unsupported`, or `lister`: the lister "
        "has filtered the topics itself."
    )
    literal: str | None = Field(description="The one name, without its scheme, that can match.")
    ranges: list[list[str]] | None = Field(description="Bounds of names, outside of which nothing matches.")
    required: list[str] | None = Field(description="Texts that every match has, the longest first.")
    looked_at: int | None = Field(
        description="How many names the namespace has; null if plugins list or hide some, or rules hide some."
    )
    ms: float = Field(description="Milliseconds that the server took before it wrote the answer.")


class ListingEnd(JsonObject):
    """Facts of a listing besides its topics."""

    filtered: bool = Field(description="Whether the server applied the pattern.")
    next: str | None = Field(description="The cursor of the next page.")
    total: int | None = Field(
        default=None,
        ge=0,
        description="How many names the whole listing has (`count`).",
        json_schema_extra={"type": "integer"},
    )
    topics_hash: Annotated[str, Field(pattern="^[0-9a-f]{1,16}$")] | None = Field(
        default=None, description="The hash of the whole listing (`count`)."
    )
    version: str | None = Field(
        default=None,
        description="The version of the namespace before the answer (`count`), if it is known.",
    )
    plan: PlanObject | None = Field(default=None, description="How the pattern was applied (`plan`).")
    warnings: list[str] = Field(
        default=[],
        description="If there are any: that the pattern can match no topic of the namespace, that no topic is "
        "selected by a property.",
    )


#: The names of a listing by media type.
NAMES: Final[Mapping[str, Callable[[RenderedNames, BlockSize], Iterator[bytes | memoryview]]]] = {
    JSON: names_json_items,
    NDJSON: names_ndjson,
    TEXT: names_text,
    ARROW: names_arrow,
}
#: The names with details by media type: lines of text have no room for more than a name.
DETAILS: Final[
    Mapping[str, Callable[[RenderedNames, Details, Sequence[str], BlockSize], Iterator[bytes | memoryview]]]
] = {JSON: detail_json_items, NDJSON: detail_ndjson, ARROW: detail_arrow}
#: Bytes that each name takes besides its own, at the most as a rule.
_BESIDES: Final = 3
#: Bytes of the names of a page that are looked at in some tens of microseconds, before the first piece is made.
_QUICK: Final = 1024 * 1024


def names_body(media_type: str, names: RenderedNames, size: int, end: ListingEnd) -> RenderedBody:
    """The names in this form; ``size`` is that of their bytes."""
    block = BlockSize()
    body = listing_body(media_type, NAMES[media_type](names, block), block, size + _BESIDES * len(names), end)
    body.quick = isinstance(names, pa.Array) and names.nbytes <= _QUICK
    return body


def details_body(
    media_type: str, names: RenderedNames, details: Details, columns: Sequence[str], end: ListingEnd
) -> RenderedBody:
    """The names with details of their topics in this form, which is not text."""
    block = BlockSize()
    items = DETAILS[media_type](names, details, columns, block)
    return listing_body(media_type, items, block, detail_size(names, details), end)


def listing_body(
    media_type: str, items: Iterator[bytes | memoryview], block: BlockSize, size: int, end: ListingEnd
) -> RenderedBody:
    """Rendered items in this form, with the text around them. ``size`` is the approximate size of the items."""
    said = end.content()
    topics_hash = said.get("topics_hash")
    if "total" not in said:
        said.pop("topics_hash", None)
    if media_type == JSON:
        # After the items: counts may be known only then.
        rest = ascii_json(said)[1:]
        return RenderedBody(JSON, items, block, size, b'{"items":[', f"],{rest}\n".encode())
    if media_type == NDJSON:
        trailer = ascii_json({"topics_hash": topics_hash} | said)
        return RenderedBody(NDJSON, items, block, size, end=f"{trailer}\n".encode())
    content_type = f"{TEXT}; charset=utf-8" if media_type == TEXT else media_type
    return RenderedBody(content_type, items, block, size)


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
        headers = listing_headers(answer)
        is_known = has_listing(request, headers, answer.topics_hash)
        selection = answer.selection
        if selection is None or is_known:
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


def has_listing(request: ApiRequest, headers: dict[str, str], tag: str) -> bool:
    """Add the ``ETag`` of a listing to the headers of its answer; whether the client has that listing already.

    The tag is weak, since the forms of a listing (JSON, text, gzip ...) differ in bytes.
    """
    headers["ETag"] = f'W/"{tag}"'
    known: EntityTags | None = request.values[KNOWN.name]
    return known is not None and known.matches(headers["ETag"], weakly=True)


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
