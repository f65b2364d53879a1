"""Reader of the embedded catalogue's change log; reading a version costs no more than for a listing.

It has a :class:`~.file_watch.FileWatch` of its own, beside the lister's: each has to notice itself that another file
was put into the place of the catalogue.

Writes to the file, by any process of this machine, are reported by Linux (inotify). A commit is written to the log
beside the file (``-wal``) first, and then made visible in shared memory, which nothing reports. So a notice comes
shortly before a commit can be read, or long before if the disk is slow: what waits looks soon after it, and now and
then without one. A file that takes another's place is reported as an attribute of the one that it replaces. Elsewhere
than on Linux, and of a file without a log, nothing is reported.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from broker_core.catalog.catalog_errors import reading_catalog
from broker_core.catalog.store.file_watch import FileWatch, WatchedVersions
from broker_core.catalog.store.log_rows import (
    LogSpan,
    SpanBound,
    none_recreated,
    read_changes,
    read_changes_of,
    read_history,
    read_recreated,
    read_span,
    read_version,
)
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion, Change, Changes, Gap
from broker_core.names import NamespaceName, TopicName

__all__ = ["CatalogLogReader", "WriteNotices"]


_MODIFY: Final = 0x2
_ATTRIB: Final = 0x4  # of a file that another one is renamed to, or that is deleted: it has a link less
_MOVE_SELF: Final = 0x800
_WRITES: Final = _MODIFY | _ATTRIB | _MOVE_SELF
#: Bytes of notices that are read at a time; what they say is of no interest.
_READ: Final = 64 * 1024


class WriteNotices:
    """Notices of writes to one file. Made and used on one event loop."""

    def __init__(self, path: Path) -> None:
        self._paths = [os.fsencode(path), os.fsencode(path) + b"-wal"]
        self._waiting: dict[object, Callable[[], None]] = {}
        self._libc: ctypes.CDLL | None = None
        self._file = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = not sys.platform.startswith("linux")

    def close(self) -> None:
        """Report nothing any more."""
        self._is_closed = True
        self._listen(None)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def next(self, key: object, notify: Callable[[], None]) -> bool:
        """Call ``notify`` once, at the next write after this call; false if writes are not reported.

        A later call with the same ``key`` is in the place of an earlier one.
        """
        # While this one waits, no other file took the place of one that is watched: that would have been reported.
        if self._is_closed or not (key in self._waiting or self._watches()):
            return False
        self._waiting[key] = notify
        self._listen(asyncio.get_running_loop())
        return True

    def forget(self, key: object) -> None:
        """Cancel the notification of this key."""
        self._waiting.pop(key, None)
        if not self._waiting:
            self._listen(None)

    def _watches(self) -> bool:
        """Watch the files that exist now, each once; false if the system cannot watch them."""
        try:
            if self._libc is None:
                self._libc = ctypes.CDLL(None, use_errno=True)
                self._file = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            watch = self._libc.inotify_add_watch
        except (OSError, AttributeError):  # a C library without it
            self._is_closed = True
            return False
        return self._file >= 0 and all(watch(self._file, path, _WRITES) >= 0 for path in self._paths)

    def _listen(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Report writes from now on, on this loop; ``None`` ends the reports."""
        if loop is self._loop:
            return
        self._drain()
        if self._loop is not None:
            self._loop.remove_reader(self._file)
        if loop is not None:
            loop.add_reader(self._file, self._written)
        self._loop = loop

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._file, _READ)) > _READ // 2:
                pass

    def _written(self) -> None:
        waiting, self._waiting = self._waiting, {}
        # Until the next one is wanted: a busy file would wake the loop at each of its writes.
        self._listen(None)
        for notify in waiting.values():
            notify()


class CatalogLogReader(WatchedVersions[CatalogVersion]):
    """A :class:`~broker_core.change_log.ChangeLog` of the embedded catalogue. Made and used on one event loop."""

    name: Final = "catalog"

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog
        self._watch = FileWatch(catalog)
        super().__init__(self._watch, self._watch.version)
        #: The notices of writes to the file.
        self.writes = WriteNotices(catalog.path)

    def close(self) -> None:
        """Close the file; after that no version is known at once."""
        self.writes.close()
        self._watch.close()

    async def catalog_id(self) -> str:
        """The random id of the file that is there now."""
        with reading_catalog():
            await self._watch.current()
        return self._watch.catalog_id

    def state_now(self) -> int | None:
        """A number that changes with every commit; ``None`` if the file cannot be read."""
        return self._watch.state if self._watch.look() else None

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace; waits if the file is being written, or was replaced."""
        now = self.version_now(namespace)
        if now is not None:
            return now
        return await self._watch.read_in_thread(partial(read_version, namespace=namespace))

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """The changes after ``since``, or a gap if the log does not reach back to it."""
        return await self._watch.read_in_thread(partial(read_changes, namespace=namespace, since=since))

    async def span(self, namespace: NamespaceName, since: CatalogVersion, within: SpanBound) -> LogSpan | Gap:
        """The changes after ``since`` that keep a bound, to be read by :meth:`changes_of`."""
        return await self._watch.read_in_thread(
            partial(read_span, namespace=namespace, since=since, within=within)
        )

    async def changes_of(self, namespace: NamespaceName, span: LogSpan) -> Changes | Gap:
        """The changes of a span, or a gap if the log has them no longer."""
        return await self._watch.read_in_thread(partial(read_changes_of, namespace=namespace, span=span))

    async def recreated(
        self, namespace: NamespaceName, since: CatalogVersion, gone: CatalogVersion, most: int
    ) -> list[str] | None:
        """The listed names of topics made after ``since`` whose names other topics had after ``gone``.

        ``None`` if the log does not reach back, or there are more than ``most``.
        """
        # A thread would take longer for so few rows, and as a rule nothing was made again.
        if self._watch.read_row(lambda now: none_recreated(now, namespace, since, gone)):
            return []
        return await self._watch.read_in_thread(
            partial(read_recreated, namespace=namespace, since=since, gone=gone, most=most)
        )

    async def history(
        self, topic: TopicName, most: int, most_text: int
    ) -> tuple[list[Change], CatalogVersion, bool]:
        """The last changes of a topic, the newest first, the version after which the log has all changes, and whether
        older ones may be left out: there are ``most`` at the most, of ``most_text`` characters that clients chose.
        """
        return await self._watch.read_in_thread(
            partial(read_history, topic=topic, most=most, most_text=most_text)
        )
