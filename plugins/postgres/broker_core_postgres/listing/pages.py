"""Pages of names, read by one statement each or, for rows without an order, by one cursor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

from broker_core.names import NON_PERSISTENT, PERSISTENT, TopicName
from broker_core_postgres.listing.listing_sql import (
    PAGE_NAMES,
    RowSource,
    Statement,
    next_page_statement,
    search_statement,
)
from broker_core_postgres.listing.reserved_memory import ReservedMemory
from broker_core_postgres.listing.row_conditions import RowConditions

__all__ = ["NamesPage", "PageTooLarge", "fetch_row", "following_pages"]

#: Bytes of names in a page of a search.
_SEARCH_PAGE: Final = 2 * 1024 * 1024
#: The cursor of a search. It ends with the transaction.
_DECLARE: Final = "DECLARE broker_core_pages NO SCROLL CURSOR FOR"
_FETCH: Final = "FETCH NEXT FROM broker_core_pages"


class PageTooLarge(Exception):
    """A page of ``size`` bytes was withheld: less memory is reserved."""

    def __init__(self, size: int) -> None:
        super().__init__(f"a page of {size} bytes")
        self.size = size


@dataclass(frozen=True, slots=True)
class NamesPage:
    """The names of a page by domain, each after a slash. ``names`` is their number as the database counted them."""

    names: int
    size: int
    persistent: bytes
    other: bytes

    @classmethod
    def of(cls, row: Any) -> NamesPage:
        """The page of a statement's row (:mod:`.listing_sql`)."""
        if row["size"] and row["persistent"] is None and row["other"] is None:
            raise PageTooLarge(row["size"])
        return cls(row["names"], row["size"], row["persistent"] or b"", row["other"] or b"")

    @property
    def full(self) -> bool:
        """Whether more names may follow."""
        return self.names >= PAGE_NAMES

    def last(self, *, by_matched: bool) -> tuple[str, str, str]:
        """The last row of a page: matched, domain, local name.

        Rows are ordered by all three, or by domain and local name alone. Each domain's names are in that order too.
        """
        rows = []
        for domain, names in ((NON_PERSISTENT, self.other), (PERSISTENT, self.persistent)):
            if names:
                local = names.rpartition(b"/")[2].decode()
                rows.append((TopicName.split_local(local)[0], domain, local))
        # The database orders by bytes of UTF-8, which is the order of characters.
        return max(rows) if by_matched else rows[-1]


async def fetch_row(connection: Any, statement: Statement) -> Any:
    """The only row of a statement, ``None`` without one."""
    return await connection.fetchrow(statement.text, *statement.arguments)


async def following_pages(
    connection: Any,
    row_conditions: RowConditions,
    source: RowSource,
    memory: ReservedMemory,
    held: Callable[[], int],
    after: NamesPage | None = None,
) -> AsyncIterator[NamesPage]:
    """Read all pages, or those after the page ``after`` of a whole namespace, in a transaction with one snapshot.

    ``held()`` gives the bytes of the pages so far.
    """
    if row_conditions.kind == "search":
        await memory.reserve_now(ReservedMemory.bytes_for_page(_SEARCH_PAGE, held()))
        statement = search_statement(row_conditions, source, _SEARCH_PAGE)
        # In SQL: a cursor of the driver leaves a named statement behind, which poolers of transactions do not support.
        await connection.execute(f"{_DECLARE} {statement.text}", *statement.arguments)
        while (row := await connection.fetchrow(_FETCH)) is not None:
            yield NamesPage.of(row)
            await memory.reserve_now(ReservedMemory.bytes_for_page(_SEARCH_PAGE, held()))
        return
    most = max(_SEARCH_PAGE, after.size + after.size // 4 if after is not None else 0)
    for bounds in row_conditions.bounds or (None,):
        by_matched = bounds is not None
        last = after.last(by_matched=by_matched) if after is not None else None
        while True:
            await memory.reserve_now(ReservedMemory.bytes_for_page(most, held()))
            row = await fetch_row(connection, next_page_statement(row_conditions, source, bounds, last, most))
            try:
                page = NamesPage.of(row)
            except PageTooLarge as large:
                most = large.size
                continue
            if page.names:
                yield page
                last = page.last(by_matched=by_matched)
            if not page.full:
                break
