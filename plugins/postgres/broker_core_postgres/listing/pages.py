"""Rows of the database as a listing: reading pages, matching them, encoding them, within the request's memory.

While one page is matched and encoded in a thread, the next one is read. Memory is reserved before it is used. Where
that has to wait, nothing else is held meanwhile: :exc:`MustWait` leaves the block that holds the connection, which
stops the statement, and the listing begins anew when there is memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from broker_core import ListingBuilder, ListingRequest, Selection
from broker_core.errors import InvalidListing, ListingFailed
from broker_core.names import NON_PERSISTENT, PERSISTENT, TopicName
from broker_core_postgres.listing.listing_sql import PAGE, Source, Statement, next_page, pages_of_search
from broker_core_postgres.listing.row_filter import Plan

__all__ = ["Memory", "MustWait", "Page", "PageTooLarge", "Reading", "fetch_page", "later_pages"]

#: Bytes of names that are handled on the event loop: some hundred microseconds, about what a thread costs.
_QUICK: Final = 48 * 1024
#: The same where RE2 has to look at each.
_QUICK_TO_MATCH: Final = 8 * 1024
#: What a page of names takes while it is handled, in multiples of its bytes: as it came, as a column, matched, encoded.
_PAGE_FACTOR: Final = 5
#: Seconds that a reservation may take while a connection is held.
_PATIENCE: Final = 0.02
#: Bytes of names in a page of a search.
_SEARCH_PAGE: Final = 2 * 1024 * 1024
#: The cursor of a search; it ends with the transaction.
_DECLARE: Final = "DECLARE broker_core_pages NO SCROLL CURSOR FOR"
_FETCH: Final = "FETCH NEXT FROM broker_core_pages"


class MustWait(Exception):
    """There is no memory at once. ``reservation`` is under way: wait for it without a connection, and begin anew."""

    def __init__(self, reservation: asyncio.Task[None], size: int) -> None:
        super().__init__(f"waiting for {size} bytes")
        self.reservation = reservation
        self.size = size


class PageTooLarge(Exception):
    """A page of ``size`` bytes was withheld, because there is not as much memory reserved."""

    def __init__(self, size: int) -> None:
        super().__init__(f"a page of {size} bytes")
        self.size = size


@dataclass(frozen=True, slots=True)
class Page:
    """Names of a statement's row, each behind a slash, by domain; ``names`` is how many the database counted."""

    names: int
    size: int
    persistent: bytes
    other: bytes

    @classmethod
    def of(cls, row: Any) -> Page:
        """The page in a row of one of :mod:`~broker_core_postgres.listing.listing_sql`."""
        if row["size"] and row["persistent"] is None and row["other"] is None:
            raise PageTooLarge(row["size"])
        return cls(row["names"], row["size"], row["persistent"] or b"", row["other"] or b"")

    @property
    def full(self) -> bool:
        """Whether there may be more names behind it."""
        return self.names >= PAGE

    def last(self, *, by_matched: bool) -> tuple[str, str, str]:
        """The last row of a page: matched, domain, local name.

        It is ordered by these, or by domain and local name alone. The names of either domain are in that order too.
        """
        rows = []
        for domain, names in ((NON_PERSISTENT, self.other), (PERSISTENT, self.persistent)):
            if names:
                local = names.rpartition(b"/")[2].decode()
                rows.append((TopicName.split_local(local)[0], domain, local))
        # The order of the database is that of bytes, and so is that of characters.
        return max(rows) if by_matched else rows[-1]


class Memory:
    """What a request has reserved, in bytes; it only grows."""

    def __init__(self, reserve: Callable[[int], Awaitable[None]]) -> None:
        self.reserved = 0
        self._reserve = reserve

    async def need(self, size: int) -> None:
        """Reserve so much in all, however long it takes: for who holds nothing that others wait for."""
        if size > self.reserved:
            await self._reserve(size)
            self.reserved = size

    async def need_now(self, size: int) -> None:
        """Reserve so much in all, if that takes no waiting; else :exc:`MustWait`."""
        if size <= self.reserved:
            return
        size = max(size, self.reserved + self.reserved // 2)
        task = asyncio.get_running_loop().create_task(self._now(size))
        try:
            done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        except BaseException:
            task.cancel()
            raise
        if not done:
            raise MustWait(task, size)
        task.result()
        self.reserved = size

    async def wait_for(self, waiting: MustWait) -> None:
        """Wait for what could not be had at once."""
        try:
            await waiting.reservation
        finally:
            waiting.reservation.cancel()
        self.reserved = max(self.reserved, waiting.size)

    async def _now(self, size: int) -> None:
        await self._reserve(size)

    @property
    def page_bytes(self) -> int:
        """The largest page that there is memory for, where nothing else is held."""
        return self.reserved // _PAGE_FACTOR

    @staticmethod
    def for_page(size: int, held: int = 0) -> int:
        """What a page of ``size`` takes, beside what is ``held``."""
        return _PAGE_FACTOR * size + held + held // 4


class Reading:
    """The names that were read so far. One for each attempt at a listing."""

    def __init__(self, request: ListingRequest, *, finish: bool, workers: ThreadPoolExecutor) -> None:
        self.rows = 0
        self.read_bytes = 0
        self._finish = finish
        self._workers = workers
        self._builder = ListingBuilder(request)
        self._under_way: asyncio.Future[None] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return self._builder.nbytes

    async def take(self, page: Page) -> None:
        """Begin with a page, when the one before is done; returns while it is handled, if that takes long."""
        await self.settle()
        self.rows += page.names
        self.read_bytes += page.size
        # The core proves by its ends that a page is of the range that was asked for, but for names of partitions.
        matching = self._finish or (self._builder.matched and b"-partition-" in page.persistent + page.other)
        if page.size <= (_QUICK_TO_MATCH if matching else _QUICK):
            self._handle(page)
            return
        loop = asyncio.get_running_loop()
        self._under_way = loop.run_in_executor(self._workers, self._handle, page)

    async def settle(self) -> None:
        """Wait until the last page is done."""
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            await under_way

    async def finish(self) -> Selection:
        """The topics of all pages that match."""
        await self.settle()
        return self._builder.finish()

    def _handle(self, page: Page) -> None:
        """In a thread, or at once: match the names of a page, and encode those that are left."""
        counted = 0
        try:
            for domain, names in ((NON_PERSISTENT, page.other), (PERSISTENT, page.persistent)):
                if names:
                    counted += self._builder.add_local(domain, names)
        except InvalidListing as error:
            raise ListingFailed(f"a row is no topic: {error}", reason="bad_topics") from None
        if counted != page.names:
            # A relation of the operator's own may hold anything; a slash would make two names of one.
            raise ListingFailed(
                f"the database has {page.names} topics here, of which {counted} names were read: a local name is "
                "null, empty or has a '/', or a domain is neither 'persistent' nor 'non-persistent'",
                reason="bad_topics",
            )


async def fetch_page(connection: Any, statement: Statement) -> Any:
    """The only row of a statement, ``None`` where there is none."""
    return await connection.fetchrow(statement.text, *statement.arguments)


async def later_pages(
    connection: Any, plan: Plan, source: Source, memory: Memory, reading: Reading, after: Page | None = None
) -> AsyncIterator[Page]:
    """All pages of a plan, or those behind the page ``after`` of a whole namespace; in a transaction of one state."""
    if plan.kind == "search":
        await memory.need_now(Memory.for_page(_SEARCH_PAGE, reading.nbytes))
        statement = pages_of_search(plan, source, _SEARCH_PAGE)
        # By SQL: the driver's own cursors leave a named statement behind, which poolers of transactions cannot take.
        await connection.execute(f"{_DECLARE} {statement.text}", *statement.arguments)
        while (row := await connection.fetchrow(_FETCH)) is not None:
            yield Page.of(row)
            await memory.need_now(Memory.for_page(_SEARCH_PAGE, reading.nbytes))
        return
    most = max(_SEARCH_PAGE, after.size + after.size // 4 if after is not None else 0)
    for bounds in plan.bounds or (None,):
        by_matched = bounds is not None
        last = after.last(by_matched=by_matched) if after is not None else None
        while True:
            await memory.need_now(Memory.for_page(most, reading.nbytes))
            row = await fetch_page(connection, next_page(plan, source, bounds, last, most))
            try:
                page = Page.of(row)
            except PageTooLarge as large:
                most = large.size
                continue
            if page.names:
                yield page
                last = page.last(by_matched=by_matched)
            if not page.full:
                break
