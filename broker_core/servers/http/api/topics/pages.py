"""Pages of a listing, details and counts: the parameters, and the answer in the form that the client prefers.

The order of pages is that of :mod:`broker_core.listing.pages.page`. Rights are asked for each page, as for any listing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

from aiohttp import web

from broker_core.access import Asker
from broker_core.catalog import reading_catalog
from broker_core.change_log import version_text
from broker_core.errors import Cause
from broker_core.listing import SHOWN_DETAILS, Page, PageWalk, Position
from broker_core.names import DOMAINS, MAX_PARTITION_INDEX, NamespaceName
from broker_core.pipeline import Answer, pattern_facts
from broker_core.plugin_api import ListingRequest
from broker_core.redaction import quoted
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.body_writer import RenderedBody
from broker_core.servers.http.api.listing_problems import sending, warning_members
from broker_core.servers.http.api.namespaces.plugin_views import is_plain
from broker_core.servers.http.api.operation import Parameter
from broker_core.servers.http.api.parameters import flag_parameter, limit_parameter, number_parameter
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import ApiServices
from broker_core.servers.http.api.topics.cursor import MAX_CURSOR, cursor_of, read_cursor
from broker_core.servers.http.api.topics.listing_answer import (
    JSON,
    NDJSON,
    ListingEnd,
    PlanObject,
    answer_to,
    details_body,
    has_listing,
    listing_headers,
    names_body,
    write_listing,
)

__all__ = ["COUNT", "CURSOR", "DETAIL", "LIMIT", "OFFSET", "PLAN", "page_question", "paged_listing"]

_WORDS: Final = "|".join(SHOWN_DETAILS)


def _detail(text: str) -> tuple[str, ...]:
    """Words with commas between, each once, in the order that they are shown in."""
    words = text.split(",")
    for word in words:
        if word not in SHOWN_DETAILS:
            raise ValueError(f"must be of {', '.join(SHOWN_DETAILS)} with commas between, not {quoted(word)}")
    return tuple(name for name in SHOWN_DETAILS if name in words)


LIMIT: Final = limit_parameter(
    "The most names of the answer, which is a page then. Without it the answer is the whole listing.",
    default=None,
)
CURSOR: Final = Parameter(
    "cursor",
    "Where the page begins: `next` of the page before, as it is. It is a position by name, so it does not expire.",
    schema={
        "type": "string",
        "format": "cursor",
        "pattern": "^[A-Za-z0-9_-]+$",
        "minLength": 1,
        "maxLength": MAX_CURSOR,
    },
)
DETAIL: Final = Parameter(
    "detail",
    f"What is said of each topic besides its name, with commas between: {', '.join(SHOWN_DETAILS)}. Items are objects "
    "then, one for each full name; the details are those of its topic.",
    read=_detail,
    schema={"type": "string", "pattern": f"^({_WORDS})(,({_WORDS}))*$"},
    default=(),
    example="partitions,properties",
)
COUNT: Final = flag_parameter(
    "count",
    "Whether the answer says how many names the whole listing has (`total`), its hash and its version.",
)


OFFSET: Final = number_parameter(
    "offset",
    "How many names are before the page, which has a `limit` and no `cursor`; `next` leads on from there.",
    0,
    10**9,
)
PLAN: Final = flag_parameter(
    "plan",
    "Whether the answer says how the pattern was applied (`plan`).",
)


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """The parts of an answer that a request wants besides the names that match: a page, details, a count, the plan.

    With an ``offset``, the page begins after so many names. ``page`` is ``None`` for the whole listing, ``columns`` are
    the details in the order in which they are shown. An answer to a request without a limit has at most ``most`` names.
    """

    page: Page | None
    columns: tuple[str, ...]
    count: bool
    most: int
    offset: int | None = None
    plan: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the answer is names alone, all of them, in the order of the hash."""
        return self.page is None and not self.columns

    @property
    def first(self) -> PageQuestion:
        """The request for the first names, if there are more than fit into one answer."""
        return replace(self, page=Page(None, self.most))

    def of(self, question: ListingRequest) -> ListingRequest:
        """The question with this page and these details."""
        return question if self.is_plain else replace(question, page=self.page, wants=frozenset(self.columns))


def page_question(values: Mapping[str, Any], namespace: NamespaceName, most: int) -> PageQuestion:
    """The wanted parts by the parameters; ``most`` names at once if no limit is given. Raises the error 400."""
    cursor, limit, offset = values["cursor"], values["limit"], values["offset"]
    if offset is not None and (cursor is not None or limit is None):
        raise refused(400, "parameter offset is for a page with limit and without cursor", Cause.BAD_REQUEST)
    page = None
    if cursor is not None or limit is not None:
        page = Page(
            None if cursor is None else _position(cursor, namespace), most if limit is None else limit
        )
    return PageQuestion(page, values["detail"], values["count"], most, offset, values["plan"])


def _position(cursor: str, namespace: NamespaceName) -> Position:
    try:
        return read_cursor(cursor, namespace)
    except ValueError as error:
        raise refused(400, f"parameter cursor {error}", Cause.BAD_REQUEST) from None


class _Total(NamedTuple):
    """The whole listing that an answer is a page of: how many names, and their hash."""

    topics: int
    topics_hash: str
    #: The position of the name at the offset, or the end if that is before it; ``None``: no name, or not asked for.
    start: Position | None = None


async def _counted(
    request: ApiRequest, question: ListingRequest, uncompiled: str | None, offset: int | None
) -> _Total:
    """Count the whole listing for the client that asks. Raises :exc:`~broker_core.errors.ListingFailed`."""
    answer = await answer_to(request, question, uncompiled)
    try:
        start = None
        if offset is not None and answer.selection is not None:
            work = partial(_place, PageWalk(answer.selection), offset, answer.topics)
            start = await request.services.pipeline.workers.call(request.asker, work)
        return _Total(answer.topics, answer.topics_hash, start)
    finally:
        answer.release()


def _place(walk: PageWalk, offset: int, total: int) -> Position | None:
    """The position of the name with so many before it, or after the last one of ``total``; ``None`` if there are no
    names.
    """
    if offset < total or not total:
        return walk.position(offset)
    last = walk.position(total - 1)
    assert last is not None
    if last.partition < MAX_PARTITION_INDEX:
        return Position(last.base, last.partition + 1)
    return Position(f"{last.base}!")


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
        total = await _counted(request, question, uncompiled, paged.offset)
        if paged.offset is not None:
            paged = replace(paged, page=Page(total.start, paged.page.limit))
    answer = await answer_to(request, paged.of(question), uncompiled)
    if paged.page is None and answer.topics > paged.most:
        total = _Total(answer.topics, answer.topics_hash)
        answer.release()
        paged = paged.first
        answer = await answer_to(request, paged.of(question), uncompiled)
    with sending(answer):
        following = None if answer.next is None else cursor_of(answer.next)
        headers = listing_headers(answer) | _link(request.http, following, media_type)
        tag = _tag(request, paged, answer, version)
        if tag is not None and has_listing(request, headers, tag):
            return web.Response(status=304, headers=headers)
        more: dict[str, Any] = {}
        if paged.count:
            total = total or _Total(answer.topics, answer.topics_hash)
            more = {"total": total.topics, "topics_hash": total.topics_hash, "version": version}
        if paged.plan:
            more["plan"] = await _plan(request, question, answer.plan, began)
        end = ListingEnd(filtered=answer.filtered, next=following, **more, **warning_members(answer.warnings))
        return await write_listing(request, _body(media_type, answer, paged, end), headers, answer)


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
