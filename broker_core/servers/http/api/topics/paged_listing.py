"""A page of a listing, or a listing with details, as the answer to one request in the form that the client prefers."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, Final

from aiohttp import web

from broker_core.access import Asker
from broker_core.catalog import reading_catalog
from broker_core.listing import Page
from broker_core.names import DOMAINS, NamespaceName
from broker_core.pipeline import Answer, pattern_facts
from broker_core.plugin_api import ListingRequest
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.body_writer import RenderedBody
from broker_core.servers.http.api.etag import KNOWN, EntityTags, listing_etag
from broker_core.servers.http.api.listing_outcome import sending
from broker_core.servers.http.api.listing_warnings import warning_members
from broker_core.servers.http.api.namespaces.plugin_views import is_plain
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topics.cursor import cursor_of
from broker_core.servers.http.api.topics.forms import (
    JSON,
    NDJSON,
    ListingEnd,
    PlanObject,
    details_body,
    names_body,
)
from broker_core.servers.http.api.topics.pages import OFFSET, ListingTotal, PageQuestion, counted
from broker_core.servers.http.api.topics.whole_listing import answer_to, listing_headers, write_listing
from broker_core.service import version_text

__all__ = ["paged_listing"]

#: The forms that have the cursor of the next page in their content.
_WITH_NEXT: Final = {JSON, NDJSON}
#: Characters of a cursor, as it stands in a link.
_LONG: Final = 2048


async def paged_listing(
    request: ApiRequest,
    question: ListingRequest,
    uncompiled: str | None,
    paged: PageQuestion,
    media_type: str,
) -> web.StreamResponse:
    """The wanted names, in the order of pages; 304 if the client has them already.

    The tag has the version from before the answer, so that a change meanwhile is not taken for known.
    """
    services, began = request.services, time.perf_counter()
    version = await _known_version(services, question.asker, question.namespace)
    total = None
    if paged.page is not None and (paged.count or paged.offset is not None):
        total = await counted(request, question, uncompiled, paged.offset)
        if paged.offset is not None:
            paged = replace(paged, page=Page(total.start, paged.page.limit))
    answer = await answer_to(request, paged.of(question), uncompiled)
    if paged.page is None and answer.topics > paged.most:
        total = ListingTotal.of(answer)
        answer.release()
        paged = paged.first
        answer = await answer_to(request, paged.of(question), uncompiled)
    with sending(answer):
        following = None if answer.next is None else cursor_of(answer.next)
        headers = listing_headers(answer) | _link(request.http, following, media_type)
        tag = _tag(request, paged, answer, version)
        if tag is not None:
            headers["ETag"] = listing_etag(tag)
            known: EntityTags | None = request.values[KNOWN.name]
            if known is not None and known.matches(headers["ETag"], weakly=True):
                return web.Response(status=304, headers=headers)
        more: dict[str, Any] = {}
        if paged.count:
            total = ListingTotal.of(answer) if total is None else total
            more = _counts(total, version)
        if paged.plan:
            more["plan"] = await _plan(request, question, answer.plan, began)
        end = ListingEnd(filtered=answer.filtered, next=following, **more, **warning_members(answer.warnings))
        return await write_listing(request, _body(media_type, answer, paged, end), headers, answer)


def _counts(total: ListingTotal, version: str | None) -> dict[str, Any]:
    return {"total": total.total, "topics_hash": total.topics_hash, "version": version}


async def _plan(request: ApiRequest, question: ListingRequest, how: str, began: float) -> PlanObject:
    """The way in which the pattern of an answer was applied, and the number of names that were matched."""
    pipeline, text = request.services.pipeline, request.values["pattern"]
    pattern = question.pattern or (None if text is None else pipeline.compile_now(text))
    facts = (
        {} if pattern is None or how in {"none", "unsupported"} else pattern_facts(pattern)
    )  # it was not applied
    looked_at, catalog = None, request.services.catalog
    if catalog is not None and is_plain(request.services, request.asker, question.namespace):
        with reading_catalog():
            count = partial(catalog.counts.count, [question.namespace])
            (names,) = await pipeline.workers.call(request.asker, count)
        counts = zip(DOMAINS, names.names, strict=True)
        looked_at = sum(number for domain, number in counts if question.mode.lists(domain))
    ms = round((time.perf_counter() - began) * 1000, 3)
    known = {name: facts.get(name) for name in ("literal", "ranges", "required")}
    return PlanObject(how=how, looked_at=looked_at, ms=ms, **known)


def _tag(request: ApiRequest, paged: PageQuestion, answer: Answer, version: str | None) -> str | None:
    """The tag: the hash of plain names; for all else with the version, and none if that is unknown."""
    if paged.is_plain:
        return answer.topics_hash
    if version is None or (paged.columns and _plugins_describe(request.services, request.namespace())):
        return None
    return f"{answer.topics_hash}-{version}"


def _body(media_type: str, answer: Answer, paged: PageQuestion, end: ListingEnd) -> RenderedBody:
    names = answer.page_names if answer.page_names is not None else answer.selection
    assert names is not None  # the question has no hash
    if answer.details is None:
        return names_body(media_type, names, answer.fields_size, end)
    return details_body(media_type, names, answer.details, paged.columns, end)


async def _known_version(services: ApiServices, asker: Asker, namespace: NamespaceName) -> str | None:
    """The version of the catalogue, if the asker's listing of this namespace depends on that alone."""
    pipeline = services.pipeline
    if (
        services.change_log is None
        or pipeline.dispatcher.lists(namespace)
        or pipeline.hides(asker, namespace)
    ):
        return None
    return version_text(await services.change_log.version(namespace))


def _plugins_describe(services: ApiServices, namespace: NamespaceName) -> bool:
    describers = services.pipeline.dispatcher.describe_hook.plugins(namespace)
    return any(describes for _, describes in describers)


def _link(request: web.Request, cursor: str | None, media_type: str) -> dict[str, str]:
    """The address of the next page, for clients that follow links (RFC 8288) and for forms without ``next``.

    Many clients refuse an answer with a header of more than 8,000 bytes, so the others have no link that is so long.
    """
    if cursor is None or (len(cursor) > _LONG and media_type in _WITH_NEXT):
        return {}
    following = request.rel_url.without_query_params(OFFSET.name).update_query(cursor=cursor)
    return {"Link": f'<{following}>; rel="next"'}
