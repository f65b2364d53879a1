"""Answers in pages (KIP-1062): of a server that has them, or of a client that cuts its request; or whole answers."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, overload

from broker_core.client.client_errors import ClientError, UnexpectedAnswer
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.kafka_errors import raise_for
from broker_core.client.kafka.node_connection import NodeConnection
from broker_core.client.kafka.results import PagedBy, Results, complete
from broker_core.wire.kafka import ZERO_ID, Api, Fields, order_of, ordered

__all__ = ["Connect", "Page", "Pager", "collected", "goes_on", "joined", "latest"]

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
#: Gives the node to ask.
Connect: TypeAlias = Callable[[Attempts], Awaitable[NodeConnection]]

_ID: Final = "topic_id"


class Page(Sequence[T]):
    """The rows of one page, or of all together. ``paged_by`` says which side cut the answer: the ``"server"``
    (KIP-1062), the ``"client"``, which asked for a part at a time, or neither (``None``): it is the whole.
    """

    def __init__(self, rows: Iterable[T], paged_by: PagedBy) -> None:
        self._rows = tuple(rows)
        self.paged_by = paged_by

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._rows[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<Page of {len(self)}, paged by {self.paged_by}>"


async def collected(
    wanted: Iterable[K], pages: AsyncIterator[Results[K, V]], merge: Callable[[V, V], V]
) -> Results[K, V]:
    """The results of all pages in the order of ``wanted``; ``merge`` joins two parts of one item, in order.

    Only the first item of a page may go on from the page before. One that comes again later is of a recreated topic.
    """
    rows: dict[K, V | ClientError] = {}
    paged_by: PagedBy = None
    async for page in pages:
        paged_by = page.paged_by or paged_by
        for place, (key, row) in enumerate(page.rows()):
            known = rows.get(key)
            if place or known is None or isinstance(known, ClientError) or isinstance(row, ClientError):
                rows[key] = row
            else:
                rows[key] = merge(known, row)
    return Results(complete(wanted, rows), paged_by)


def latest(_former: V, row: V) -> V:
    """The last row."""
    return row


async def joined(
    pages: AsyncIterator[Page[T]],
    key: Callable[[T], Hashable] | None = None,
    topic: Callable[[T], Hashable] | None = None,
) -> Page[T]:
    """All rows of all pages.

    A ``key`` that comes again on a later page is of a recreated ``topic``: its former rows are dropped.
    """
    rows: list[T] = []
    keys: set[Hashable] = set()
    paged_by: PagedBy = None
    async for page in pages:
        if key is not None and topic is not None:
            again = {topic(row) for row in page if key(row) in keys}
            rows = [row for row in rows if topic(row) not in again] if again else rows
            keys.update(map(key, page))
        rows += page
        paged_by = page.paged_by
    return Page(rows, paged_by)


@dataclass(frozen=True, slots=True)
class Pager:
    """Asks for pages of ``limit`` units, each within the time that ``attempts`` gives it."""

    attempts: Callable[[], Attempts]
    limit: int

    def parts(self, items: Iterable[T]) -> Iterator[list[T]]:
        """The items in parts of a page's size: each item is at least one unit."""
        several = list(items)
        return (several[low : low + self.limit] for low in range(0, len(several), self.limit))

    async def answers(
        self,
        api: Api,
        body: Mapping[str, Any],
        connect: Connect,
        *,
        cut: bool = False,
        least: int = 0,
        most: int | None = None,
        check: Callable[[Fields], None] = lambda _: None,
    ) -> AsyncIterator[tuple[Fields, PagedBy]]:
        """The answers to a request, page after page; ``cut``: the request is a part of the question.

        Raises :exc:`~broker_core.client.UnexpectedAnswer` for pages that do not go on, and errors of ``check`` about an
        answer; the answer is asked for again if the error may pass.
        """
        cursor: Fields | None = None
        while True:
            attempts = self.attempts()
            request = {**body, "response_pagination_limit": self.limit, "cursor": cursor}

            async def ask(attempts: Attempts = attempts, request: Fields = request) -> tuple[Fields, bool]:
                connection = await connect(attempts)
                has_pages = await connection.has_pages()
                if request["cursor"] is not None and not has_pages:
                    raise UnexpectedAnswer("the server that has the next page has no pages")
                value = await connection.ask(api, request, least=least, most=most)
                raise_for(value.get("error_code", 0), value.get("error_message"))
                check(value)
                return value, has_pages

            value, has_pages = await attempts.until_answered(ask)
            yield value, "server" if has_pages else "client" if cut else None
            following = value["next_cursor"]
            if following is None:
                return
            if not following or (cursor is not None and not goes_on(cursor, following)):
                raise UnexpectedAnswer(f"the next page would begin at {following}, behind {cursor}")
            cursor = following


def goes_on(former: Fields, cursor: Fields) -> bool:
    """Whether a cursor is after the former one. In a recreated topic it may be before it."""
    fields = ordered([name for name in cursor if name != _ID])
    if not former.keys() >= set(fields):
        return False
    ids = former.get(_ID, ZERO_ID), cursor.get(_ID, ZERO_ID)
    if ZERO_ID not in ids and ids[0] != ids[1]:
        fields = fields[: fields.index("topic_name") + 1]
        return order_of(cursor, fields) >= order_of(former, fields)
    return order_of(cursor, fields, ids[1]) > order_of(former, fields, ids[0])
