"""A listing put together of pages: the names of each matched by RE2 where that is left to do, and encoded.

While one page is matched and encoded in a thread, the next one is read.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from broker_core import ListingBuilder, ListingRequest, Selection
from broker_core.errors import InvalidListing, ListingFailed
from broker_core.names import NON_PERSISTENT, PERSISTENT
from broker_core_postgres.listing.pages import NamesPage

__all__ = ["ListingAssembler"]

#: Bytes of names that are handled on the event loop: some hundred microseconds, about what a thread costs.
_QUICK: Final = 48 * 1024
#: The same where RE2 has to look at each.
_QUICK_TO_MATCH: Final = 8 * 1024


class ListingAssembler:
    """The names that were read so far. One for each attempt at a listing."""

    def __init__(self, request: ListingRequest, *, finish: bool, threads: ThreadPoolExecutor) -> None:
        self.rows = 0
        self.read_bytes = 0
        self._finish = finish
        self._threads = threads
        self._builder = ListingBuilder(request)
        self._under_way: asyncio.Future[None] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return self._builder.nbytes

    async def add(self, page: NamesPage) -> None:
        """Begin with a page, when the one before is done; returns while it is handled, if that takes long."""
        await self.wait()
        self.rows += page.names
        self.read_bytes += page.size
        # The core proves by its ends that a page is of the range that was asked for, but for names of partitions.
        matching = self._finish or (self._builder.matched and b"-partition-" in page.persistent + page.other)
        if page.size <= (_QUICK_TO_MATCH if matching else _QUICK):
            self._handle(page)
            return
        loop = asyncio.get_running_loop()
        self._under_way = loop.run_in_executor(self._threads, self._handle, page)

    async def wait(self) -> None:
        """Wait until the last page is done."""
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            await under_way

    async def finish(self) -> Selection:
        """The topics of all pages that match."""
        await self.wait()
        return self._builder.finish()

    def _handle(self, page: NamesPage) -> None:
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
