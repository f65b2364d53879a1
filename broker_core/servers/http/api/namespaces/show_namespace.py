"""``GET /v1/namespaces/{tenant}/{namespace}``: how many topics a listing of each mode has, and the version."""

from __future__ import annotations

from functools import partial

from aiohttp import web
from pydantic import Field

from broker_core.catalog import NamespaceCounts, reading_catalog
from broker_core.listing import Selection, rows_by_domain
from broker_core.names import DOMAINS, Mode
from broker_core.plugin_api import ListingRequest
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.namespaces.list_namespaces import (
    ModeCounts,
    NamespaceObject,
    count_members,
    mode_counts,
)
from broker_core.servers.http.api.namespaces.plugin_views import is_plain, source_of
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.services import ApiServices

__all__ = ["operations"]


class _Shown(NamespaceObject):
    counts: ModeCounts = Field(description="The names that a listing of each mode has.")


_EXAMPLE = {
    "namespace": "public/default",
    "version": "A1sqh0DGTTO5k7Gf3O4HIA:3.a3eedc6b04209c5daba6f027",
    "source": "catalog",
    "changed": "2026-11-22T18:49:05.694+00:00",
    "counts": {"persistent": 3, "non_persistent": 1, "all": 4},
}


def operations(services: ApiServices) -> list[HttpOperation]:
    """The operation of this module."""
    counts = None if services.catalog is None else services.catalog.counts

    async def show(request: ApiRequest) -> web.StreamResponse:
        if counts is not None and is_plain(services, request.asker, request.namespace()):
            return await _of_catalog(request, counts)
        return await _of_listing(request)

    return [
        HttpOperation(
            "GET",
            "/v1/namespaces/{tenant}/{namespace}",
            "showNamespace",
            "The number of topics that a namespace has for the client that asks; none for an unknown namespace.",
            Right.LIST,
            show,
            {
                200: Reply(
                    "The namespace.",
                    {"application/json": _Shown},
                    examples={"application/json": _EXAMPLE},
                )
            },
            tag="namespaces",
        )
    ]


async def _of_catalog(request: ApiRequest, counts: NamespaceCounts) -> web.Response:
    namespace = request.namespace()
    with reading_catalog():
        (count,) = await request.services.pipeline.workers.call(
            request.asker, partial(counts.count, [namespace])
        )
    source = source_of(request.services, namespace)
    content = {"namespace": str(namespace), "source": source, **count_members(count)}
    return _Shown.model_validate(content).response()


async def _of_listing(request: ApiRequest) -> web.Response:
    """The answer by a listing of the client, if plugins list or hide topics, or brokers hold them."""
    namespace = request.namespace()
    question = ListingRequest(namespace, Mode.ALL, asker=request.asker, deadline=request.deadline)
    answer = await request.services.pipeline.answer(question)
    try:
        assert answer.selection is not None  # the question has no hash
        counts = _counts(answer.selection)
    finally:
        answer.release()
    source = source_of(request.services, namespace)
    content = {"namespace": str(namespace), "version": None, "source": source, "changed": None}
    return _Shown.model_validate(content | {"counts": counts}).response()


def _counts(selection: Selection) -> dict[str, int]:
    rows = rows_by_domain(selection)
    return mode_counts(*(rows.get(domain, 0) for domain in DOMAINS))
