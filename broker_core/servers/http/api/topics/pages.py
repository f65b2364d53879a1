"""Pages of a listing, details and counts: the parameters, and the needed answers of the pipeline.

The order of pages is that of :mod:`broker_core.listing.pages.page`. Rights are asked for each page, as for any listing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from broker_core.errors import Cause
from broker_core.listing import SHOWN_DETAILS, Page, PageWalk, Position
from broker_core.names import MAX_PARTITION_INDEX, NamespaceName
from broker_core.pipeline import Answer, QuestionWarning
from broker_core.plugin_api import ListingRequest
from broker_core.redaction import quoted
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import Parameter
from broker_core.servers.http.api.parameters import flag, limit_parameter, number_parameter
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.topics.cursor import MAX_CURSOR, read_cursor
from broker_core.servers.http.api.topics.whole_listing import answer_to

__all__ = [
    "COUNT",
    "CURSOR",
    "DETAIL",
    "LIMIT",
    "OFFSET",
    "PLAN",
    "ListingTotal",
    "PageQuestion",
    "counted",
    "page_question",
]

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
COUNT: Final = Parameter(
    "count",
    "Whether the answer says how many names the whole listing has (`total`), its hash and its version.",
    read=flag,
    schema={"type": "boolean", "default": False},
    default=False,
)


OFFSET: Final = number_parameter(
    "offset",
    "How many names are before the page, which has a `limit` and no `cursor`; `next` leads on from there.",
    0,
    10**9,
)
PLAN: Final = Parameter(
    "plan",
    "Whether the answer says how the pattern was applied (`plan`).",
    read=flag,
    schema={"type": "boolean", "default": False},
    default=False,
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
        """The question with that."""
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


@dataclass(frozen=True, slots=True)
class ListingTotal:
    """The whole listing that an answer is a page of: how many names, and their hash."""

    total: int
    topics_hash: str
    filtered: bool = False
    warnings: tuple[QuestionWarning, ...] = ()
    #: The position of the name at the offset, or the end if that is before it; ``None``: no name, or not asked for.
    start: Position | None = None

    @classmethod
    def of(cls, answer: Answer, start: Position | None = None) -> ListingTotal:
        """The fields of an answer that is the whole listing."""
        return cls(answer.topics, answer.topics_hash, answer.filtered, answer.warnings, start)


async def counted(
    request: ApiRequest, question: ListingRequest, uncompiled: str | None, offset: int | None = None
) -> ListingTotal:
    """Count the whole listing for the client that asks. Raises :exc:`~broker_core.errors.ListingFailed`."""
    answer = await answer_to(request, question, uncompiled)
    try:
        start = None
        if offset is not None and answer.selection is not None:
            walk = PageWalk(answer.selection)
            start = await request.services.pipeline.workers.call(
                request.asker, partial(_place, walk, offset, answer.topics)
            )
        return ListingTotal.of(answer, start)
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
