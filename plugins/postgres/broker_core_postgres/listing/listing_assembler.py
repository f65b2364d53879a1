"""Assembling a listing from pages: each page's names are matched by RE2 if needed, and encoded.

A thread matches and encodes one page while the next one is read.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from broker_core import ListingBuilder, ListingRequest, Selection
from broker_core.errors import InvalidListing, ListingFailed
from broker_core.names import NON_PERSISTENT, PERSISTENT
from broker_core.quantities import counted
from broker_core_postgres.listing.pages import NamesPage

__all__ = ["ListingAssembler"]

#: Bytes of names that are handled on the event loop. It takes some hundred microseconds, as much as using a thread.
_QUICK: Final = 48 * 1024
#: Bytes of names that RE2 matches on the event loop.
_QUICK_TO_MATCH: Final = 8 * 1024


class ListingAssembler:
    """The names read so far, by one attempt at a listing."""

    def __init__(self, request: ListingRequest, *, finish: bool, threads: ThreadPoolExecutor) -> None:
        self.rows = 0
        self.read_bytes = 0
        self._finish = finish
        self._threads = threads
        self._builder = ListingBuilder(request)
        self._under_way: asyncio.Future[None] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the names so far."""
        return self._builder.nbytes

    async def add(self, page: NamesPage) -> None:
        """Add a page after the previous one is done. A large page is handled in a thread, without waiting for it."""
        await self.wait()
        self.rows += page.names
        self.read_bytes += page.size
        # The core checks a page's range by its first and last name, but not the names of partitions.
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
        """The matching topics of all pages."""
        await self.wait()
        return self._builder.finish()

    def _handle(self, page: NamesPage) -> None:
        """Match and encode the names of a page; in a thread for a large page."""
        read = 0
        try:
            for domain, names in ((NON_PERSISTENT, page.other), (PERSISTENT, page.persistent)):
                if names:
                    read += self._builder.add_local(domain, names)
        except InvalidListing as error:
            raise ListingFailed(f"a row is no topic: {error}", reason="bad_topics") from None
        if read != page.names:
            # The operator's own relation may hold any text; a slash makes one name look like two.
            raise ListingFailed(
                f"a row is no topic: its local name is null, empty or has a '/', or its domain is neither 'persistent' "
                f"nor 'non-persistent' ({counted(read, 'name')} in {counted(page.names, 'row')})",
                reason="bad_topics",
            )
