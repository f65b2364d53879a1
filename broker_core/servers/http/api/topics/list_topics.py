"""The operation ``GET /v1/namespaces/{tenant}/{namespace}/topics``: its declaration, and the question that it asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aiohttp import web
from pydantic import Field

from broker_core.names import Mode
from broker_core.pipeline import QuestionText
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.etag import KNOWN
from broker_core.servers.http.api.events import EVENT_STREAM, LAST_EVENT_ID, stream_topics
from broker_core.servers.http.api.json_object import JsonObject, schema_of
from broker_core.servers.http.api.listing_problems import (
    UNFILTERED,
    WARNINGS,
    namespace_of,
    refused_parts_shown,
)
from broker_core.servers.http.api.negotiation import VARY, chosen_type
from broker_core.servers.http.api.operation import HttpOperation, Parameter, Reply, Right, Schema
from broker_core.servers.http.api.parameters import MODE, PATTERN, PROPERTY
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topics.listing_answer import (
    ARROW,
    DETAILS,
    FILTERED,
    JSON,
    NAMES,
    NDJSON,
    TEXT,
    ListingEnd,
    whole_listing,
)
from broker_core.servers.http.api.topics.pages import (
    COUNT,
    CURSOR,
    DETAIL,
    LIMIT,
    OFFSET,
    PLAN,
    page_question,
    paged_listing,
)

__all__ = ["operations"]


class _Detailed(JsonObject):
    name: str
    partitions: int = Field(default=0, description="Partitions of the topic; 0: it has none.")
    topic_id: str | None = Field(default=None, description="22 characters of base64 (KIP-516).")
    properties: dict[str, str] | None = None


class _Listing(ListingEnd):
    items: list[str | _Detailed] = Field(description="Full names, each partition one; with `detail` objects.")


_TRAILER: Final[Schema] = schema_of(ListingEnd) | {"required": ["topics_hash", "filtered", "next"]}
_FORMS: Final[Mapping[str, Schema | type[JsonObject]]] = {
    JSON: _Listing,
    NDJSON: {
        "type": "array",
        "description": "One item a line, as in `items`; the last line is an object with `topics_hash` (of the whole "
        "listing; null in a page without `count`), `filtered` and `next`. Without that line the answer was cut.",
        "minItems": 1,
        "items": {"anyOf": [{"type": "string"}, schema_of(_Detailed), _TRAILER]},
    },
    TEXT: {"type": "string", "description": "One full name a line; not with `detail`."},
    EVENT_STREAM: {
        "type": "string",
        "description": "Server-sent events: `snapshot` with all topics, in parts of which the last one has `last`; "
        "then `added` and `removed` as topics come and go; `error` with a problem, which leaves the topics as "
        "they were. `id` is the topics hash of what the client has then.",
    },
    ARROW: {
        "description": "An Arrow IPC stream with a column `name` of strings, and those of `detail`.",
        "contentMediaType": ARROW,
    },
}
_NAMES: Final = [
    "persistent://public/default/bills",
    "persistent://public/default/orders-partition-0",
    "persistent://public/default/orders-partition-1",
]
_EXAMPLES: Final = {
    JSON: {"items": _NAMES, "filtered": False, "next": None},
    NDJSON: [*_NAMES, {"topics_hash": "114a690c", "filtered": False, "next": None}],
    TEXT: "".join(f"{name}\n" for name in _NAMES),
}

_HEADERS: Final = {
    "ETag": "Of these topics, in any form; weak. Of all names of a listing it is their hash; of a page or of details "
    "it has the version too, and there is none if that is not known.",
    "Link": "The address of the next page, if there is one. If the form has `next`, a very long one is left out.",
    "Vary": VARY,
    FILTERED: "Whether the server applied the pattern: `true` or `false`.",
    WARNINGS: "The `warnings` as a JSON array in ASCII, if there are any.",
}
_LAST_EVENT_ID: Final = Parameter(
    LAST_EVENT_ID,
    "For a stream of events: the `id` of the last one, to go on from there.",
    within="header",
)


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operations of this package."""
    return [
        HttpOperation(
            "GET",
            "/v1/namespaces/{tenant}/{namespace}/topics",
            "listTopics",
            "The topics of a namespace that match, for the client that asks.",
            Right.CREDENTIALS,  # the pipeline asks rules and gates
            _list_topics,
            {
                200: Reply("The listing.", _FORMS, _HEADERS, _EXAMPLES),
                304: Reply(
                    "The client has this listing already (`If-None-Match`).", headers={"ETag": "Of it."}
                ),
                406: Reply("None of the forms is one that the client takes, or a name is no line of text."),
            },
            description="An unknown namespace has no topics. `Accept` chooses the form, `Accept-Encoding: gzip` "
            "compresses it, and `If-None-Match` with the `ETag` of an earlier answer asks only for what has changed. "
            "Without `limit` all names are in one answer, in the order of the topics hash, up to a bound of the server "
            "(`http.most_items`); above it the answer is the first page. Pages are in the order of names: a client "
            "that follows `next` gets no name twice, and each name that was there throughout.",
            parameters=(
                PATTERN,
                MODE,
                PROPERTY,
                UNFILTERED,
                LIMIT,
                CURSOR,
                OFFSET,
                DETAIL,
                COUNT,
                PLAN,
                KNOWN,
                _LAST_EVENT_ID,
            ),
            question=_question_text,
        )
    ]


def _question_text(request: web.Request) -> QuestionText:
    """The question of a request, which may not be valid."""
    query = request.query
    pairs = (text.partition("=")[::2] for text in query.getall(PROPERTY.name, ()))
    mode = query.get(MODE.name, MODE.default.name).upper()
    return QuestionText(
        namespace_of(request), mode if mode in Mode.__members__ else None, query.get(PATTERN.name), pairs
    )


async def _list_topics(request: ApiRequest) -> web.StreamResponse:
    async with refused_parts_shown(request, request.values["pattern"]):
        namespace = request.namespace()
        paged = page_question(request.values, namespace, request.services.http.most_items)
        is_whole = paged.is_plain and not (paged.count or paged.plan)
        forms = (*NAMES, EVENT_STREAM) if is_whole else tuple(DETAILS if paged.columns else NAMES)
        media_type = chosen_type(request.http, forms)
        values = request.values
        question, uncompiled = request.question(values["mode"], values["pattern"], values["property"])
        if media_type == EVENT_STREAM:
            return await stream_topics(request, question, uncompiled)
        if is_whole:
            response = await whole_listing(request, question, uncompiled, paged.most, media_type)
            if response is not None:
                return response
            paged = paged.first
        return await paged_listing(request, question, uncompiled, paged, media_type)
