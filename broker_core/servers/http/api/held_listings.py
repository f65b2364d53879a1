"""Listings held by the shrink guard: showing them, and accepting those of a namespace."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from pydantic import Field

from broker_core.access import Access
from broker_core.errors import Cause, ListingFailed
from broker_core.guards import HeldListing
from broker_core.names import NamespaceName
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject, time_text
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.services import ApiServices
from broker_core.service import right_to

__all__ = ["operations"]


class _HeldListing(JsonObject):
    namespace: str
    question: str = Field(description="The topics that were asked for, and the client.")
    since: str = Field(json_schema_extra={"format": "date-time"})
    until: str = Field(
        description="The time at which it passes by itself.", json_schema_extra={"format": "date-time"}
    )
    before: int = Field(description="The topics that were listed last.")
    now: int = Field(description="The topics that are listed now.")
    missing: int


class _HeldListings(JsonObject):
    items: list[_HeldListing]


class _Accepted(JsonObject):
    accepted: int = Field(description="How many listings were held.")


_EXAMPLE: Final = {
    "namespace": "acme/orders",
    "question": "PERSISTENT for all",
    "since": "2026-11-24T03:00:00.000+00:00",
    "until": "2026-11-24T04:00:00.000+00:00",
    "before": 200,
    "now": 20,
    "missing": 180,
}
#: Listings that are shown.
_MOST: Final = 1000


def operations(_services: ApiServices) -> list[HttpOperation]:
    """The operations of this module."""
    return [
        HttpOperation(
            "GET",
            "/v1/held-listings",
            "listHeldListings",
            "The listings that are held, since many topics are missing at once.",
            Right.CREDENTIALS,  # each namespace is asked about
            _list,
            {
                200: Reply(
                    "The held listings of namespaces that the client may administer, the longest held first.",
                    {"application/json": _HeldListings},
                    examples={"application/json": {"items": [_EXAMPLE]}},
                ),
            },
            tag="server",
        ),
        HttpOperation(
            "POST",
            "/v1/namespaces/{tenant}/{namespace}/held-listings/accept",
            "acceptHeldListings",
            "Let the listings of a namespace pass: the topics that are missing are meant to be gone.",
            Right.ADMIN,
            _accept,
            {
                200: Reply(
                    "The next listings of the namespace pass, whatever they lack.",
                    {"application/json": _Accepted},
                    examples={"application/json": {"accepted": 1}},
                ),
            },
            tag="server",
            changes="accept_shrink",
        ),
    ]


async def _list(request: ApiRequest) -> web.StreamResponse:
    allowed: dict[NamespaceName, bool] = {}
    shown: list[_HeldListing] = []
    for each in request.services.pipeline.guard.held():
        if each.namespace not in allowed:
            allowed[each.namespace] = await _may_see(request, each.namespace)
        if allowed[each.namespace] and len(shown) < _MOST:
            shown.append(_shown(each))
    return _HeldListings(items=shown).response()


async def _may_see(request: ApiRequest, namespace: NamespaceName) -> bool:
    access = Access(right_to("accept_shrink"), namespace, None, request.asker)
    try:
        await request.services.pipeline.authorize(access, request.deadline)
    except ListingFailed as denied:
        if denied.cause is Cause.DENIED:
            return False
        raise
    return True


async def _accept(request: ApiRequest) -> web.StreamResponse:
    accepted = request.services.pipeline.guard.accept(request.namespace())
    return _Accepted(accepted=accepted).response()


def _shown(held: HeldListing) -> _HeldListing:
    return _HeldListing(
        namespace=str(held.namespace),
        question=held.question,
        since=time_text(held.since),
        until=time_text(held.until),
        before=held.before,
        now=held.now,
        missing=held.missing,
    )
