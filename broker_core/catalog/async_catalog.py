"""The catalogue's file for an event loop: reads by threads, and changes by one thread, one after the other.

SQLite has one writer at a time; more threads would only wait for it, and be missing elsewhere.
"""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from broker_core.catalog.catalog_errors import CatalogBusy, CatalogError
from broker_core.catalog.store.namespace_counts import NamespaceCounts
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.store.topic_rows import Edit, found_topics, topic_of_id
from broker_core.catalog.topic_decisions import TopicWrite
from broker_core.catalog.topic_files.import_file import Allow, ImportReport, import_topics
from broker_core.catalog.topic_record import TopicRecord
from broker_core.errors import Cause, ListingFailed
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from broker_core.catalog.catalog_lister import CatalogLister

__all__ = ["FEW_TOPICS", "AsyncCatalog"]

_T = TypeVar("_T")

#: Topics that are read on the event loop: each takes some 20 microseconds.
FEW_TOPICS: Final = 8
#: Changes that may wait for their turn.
_MOST_WAITING: Final = 1000
#: Seconds for which other processes, or an import, may keep the catalogue from being written.
_PATIENCE: Final = 5.0
#: Bytes of the caches of SQLite during an import.
_CACHES: Final = 64 * 1024 * 1024


class AsyncCatalog:
    """Reads and changes of topics in one file, with versions; on one event loop, which no method keeps waiting.

    Each method raises :exc:`~broker_core.catalog.CatalogError` if the file cannot be read, or written.

    ``at_once`` watches the file already: a few topics are read by its connection without waiting. ``file`` itself is
    for threads: what needs no turn, such as versions, or the users and ACLs of Kafka, is read and changed there.
    """

    def __init__(self, file: SqliteCatalog, at_once: CatalogLister | None = None) -> None:
        self.file = file
        #: How many names each namespace lists; for threads.
        self.counts = NamespaceCounts(file)
        self._at_once = at_once
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, "topic-writes")
        self._importing = ThreadPoolExecutor(1, "topic-imports")

    def close(self) -> None:
        """End the thread after its current change; the file stays open."""
        self._thread.shutdown(cancel_futures=True)
        self._importing.shutdown(cancel_futures=True)
        self.counts.close()

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self.file.path.parent

    async def found(self, names: Sequence[TopicName]) -> list[tuple[TopicRecord | None, int]]:
        """Records of topics, by :meth:`SqliteCatalog.found`; a few topics without waiting, if that is possible."""
        found = self.found_now(names)
        return await asyncio.to_thread(self.file.found, names) if found is None else found

    def found_now(self, names: Sequence[TopicName]) -> list[tuple[TopicRecord | None, int]] | None:
        """A few topics without waiting; ``None`` if they are many, or the file cannot be read at once."""
        return self._read_now(len(names), partial(found_topics, names=names))

    def topics_by_id_now(self, ids: Sequence[uuid.UUID]) -> list[TopicRecord | None] | None:
        """A few topics by their ids, without waiting; ``None`` as for :meth:`found_now`."""
        return self._read_now(len(ids), lambda file: [topic_of_id(file, topic_id) for topic_id in ids])

    def _read_now(self, count: int, query: Callable[[sqlite3.Connection], _T]) -> _T | None:
        few = self._at_once if count <= FEW_TOPICS else None
        return None if few is None else few.read_now(query)

    async def topics_by_id(self, ids: Sequence[uuid.UUID]) -> list[TopicRecord | None]:
        """Topics by their ids, by :meth:`SqliteCatalog.topics_by_id`; a few without waiting, if that is possible."""
        found = self.topics_by_id_now(ids)
        return await asyncio.to_thread(self.file.topics_by_id, ids) if found is None else found

    async def edit(
        self, namespace: NamespaceName, edits: Sequence[Edit], deadline: float | None = None
    ) -> list[TopicWrite | CatalogError]:
        """Make changes by :meth:`SqliteCatalog.edit_many`, in their turn.

        It ends by ``deadline`` (loop time), and begins within some seconds. Raises
        :exc:`~broker_core.errors.ListingFailed` with the cause ``QUEUE`` and
        :exc:`~broker_core.catalog.CatalogBusy`, in which case nothing was changed.
        """
        return await self._in_turn(lambda wait: self.file.edit_many(namespace, edits, wait=wait), deadline)

    async def import_topics(
        self,
        namespace: NamespaceName,
        source: Callable[[], BinaryIO],
        *,
        exact: Deletions | None = None,
        check: Callable[[], None] = lambda: None,
        allow: Allow | None = None,
    ) -> ImportReport:
        """Run :func:`~broker_core.catalog.topic_files.import_file.import_topics`, one import at a time."""

        def work() -> ImportReport:
            return import_topics(
                self.file,
                namespace,
                source(),
                exact=exact,
                progress=lambda _step, _count: check(),
                caches=_CACHES,
                allow=allow,
            )

        return await asyncio.get_running_loop().run_in_executor(self._importing, work)

    async def _in_turn(self, change: Callable[[float], _T], deadline: float | None = None) -> _T:
        """Run ``change`` in its turn; its argument is how many seconds it may wait for the file.

        A change that has begun is finished even if its caller is cancelled, and the caller gets its result.
        """
        if self._waiting >= _MOST_WAITING:
            raise ListingFailed(f"{_MOST_WAITING} changes of topics wait already", cause=Cause.QUEUE)
        loop = asyncio.get_running_loop()
        end = loop.time() + _PATIENCE
        if deadline is not None:
            end = min(end, deadline)
        self._waiting += 1
        begun = self._thread.submit(lambda: change(max(0.0, end - loop.time())))
        done = asyncio.wrap_future(begun)
        try:
            async with asyncio.timeout_at(end):
                return await asyncio.shield(done)
        except TimeoutError:
            if begun.cancel():
                raise CatalogBusy("Other changes of the catalogue take too long; try again later") from None
            return await done  # it has begun, and has a result
        except asyncio.CancelledError:
            if begun.cancel():
                raise
            return await done
        finally:
            self._waiting -= 1
