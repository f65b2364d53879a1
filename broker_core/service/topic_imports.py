"""Importing topics of a client: a body is stored in a file, then read and merged beside everything else.

A body is written to a file without a name in the folder of the catalogue, and so is not in memory, and gone with its
client. The file is read in small pieces, between which the thread lets the event loop run.
"""

from __future__ import annotations

import asyncio
import errno
import tempfile
import threading
import zlib
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Final, cast

from broker_core.catalog import AsyncCatalog, CatalogFull, CatalogReadOnly, ImportRefused, ImportReport
from broker_core.concurrency import pass_lock_on
from broker_core.errors import BrokerCoreError, Cause, ListingFailed
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName

__all__ = ["MOST_AUTHORIZED", "MOST_BYTES", "Ask", "BodyTooLarge", "TopicImports"]

#: Raises :exc:`~broker_core.errors.ListingFailed` for a topic that the client may not change.
Ask = Callable[[TopicName], Awaitable[object]]

#: The most bytes of a body: some ten million topics.
MOST_BYTES: Final = 1024**3
#: Imports at once; the others wait with their bodies.
_PLACES: Final = 4
#: Bytes of a body that are written at a time.
_BLOCK: Final = 1024 * 1024
#: The most bytes a second of a body: the event loop has other connections.
_RATE: Final = 100 * 1024 * 1024
#: Seconds in which a body has to arrive, and the bytes for each of which it has a second more.
_SECONDS: Final = 60.0
_SLOWEST: Final = 16 * 1024
#: Bytes that are read at a time: some 700 topics, which take a millisecond.
_PIECE: Final = 64 * 1024
#: The most topics of an import that gates are asked about, and how many at a time: half of a plugin's threads.
MOST_AUTHORIZED: Final = 10_000
_AUTHORIZED_AT_A_TIME: Final = 4
#: Seconds between two looks whether anybody still waits for the import.
_LOOK: Final = 0.2


class BodyTooLarge(BrokerCoreError):
    """A body has more than :data:`MOST_BYTES`, decompressed."""


class _Ended(BrokerCoreError):
    """The import has no waiting caller any more, or the server stops."""


class TopicImports:
    """Imports into one catalogue, one at a time; on one event loop. The caller checks rights."""

    def __init__(self, catalog: AsyncCatalog) -> None:
        self._catalog = catalog
        #: Bodies that are received, or wait to be imported.
        self.under_way = 0
        self._closed = False

    def close(self) -> None:
        """End the imports under way, which have changed nothing."""
        self._closed = True

    async def import_body(
        self,
        namespace: NamespaceName,
        pieces: AsyncIterable[bytes],
        *,
        gzip: bool = False,
        exact: Deletions | None = None,
        ask: Ask | None = None,
    ) -> ImportReport:
        """Import JSON lines (:func:`~broker_core.catalog.import_topics`), all of them or none.

        ``ask`` is called for each topic of the body, and for each that is to be deleted, before anything is changed;
        their number is bounded by :data:`MOST_AUTHORIZED` each, and it may be called for several at a time.

        If its caller is cancelled, the import ends, and has changed nothing unless it was just committed. Raises what
        ``import_topics`` does, :exc:`BodyTooLarge`, and :exc:`~broker_core.errors.ListingFailed` with the causes
        ``QUEUE`` (too many imports), ``TIME`` (the body came too slowly), ``BAD_REQUEST`` (it is no gzip, or cut
        short), ``TOO_LARGE`` (too many topics to ask about) and ``UNAVAILABLE`` (the server stops), and what ``ask``
        does.
        """
        if self.under_way >= _PLACES:
            raise ListingFailed(f"{_PLACES} imports are under way already", cause=Cause.QUEUE)
        self.under_way += 1
        loop = asyncio.get_running_loop()
        try:
            file = await self._opened()
            try:
                await _receive(pieces, _Unzipped(file) if gzip else _Stored(file))
                cancelled = threading.Event()
                source = _StoredBody(file, lambda: self._closed or cancelled.is_set())
                try:
                    allow = None if ask is None else partial(_allow, source, ask, loop)
                    return await self._catalog.import_topics(
                        namespace, source.begun, exact=exact, check=source.check, allow=allow
                    )
                except asyncio.CancelledError:
                    cancelled.set()
                    raise
            finally:
                loop.run_in_executor(None, file.close)  # which frees the blocks of the disk
        except _Ended:
            raise ListingFailed(
                "The import was ended: nothing was changed", cause=Cause.UNAVAILABLE
            ) from None
        except OSError as error:
            if error.errno in {errno.ENOSPC, errno.EDQUOT}:
                raise CatalogFull(f"The folder {self._catalog.folder} has no room for the body") from error
            if error.errno in {errno.EACCES, errno.EROFS, errno.EPERM}:
                raise CatalogReadOnly(f"The folder {self._catalog.folder} cannot be written") from error
            raise
        finally:
            self.under_way -= 1

    async def _opened(self) -> BinaryIO:
        """A file for the body, which is closed again if the caller has gone meanwhile."""
        opening = asyncio.get_running_loop().run_in_executor(None, self._open)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise

    def _open(self) -> BinaryIO:
        return cast(BinaryIO, tempfile.TemporaryFile(dir=self._catalog.folder))


def _close(opening: asyncio.Future[BinaryIO]) -> None:
    """Close a file that was opened for a caller that is gone."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


async def _receive(pieces: AsyncIterable[bytes], stored: _Stored) -> None:
    """Write a body to its file, block by block, at a bounded rate; refuse one that comes too slowly."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    block = bytearray()
    size = 0
    async for piece in pieces:
        block += piece
        size += len(piece)
        taken = loop.time() - begin
        if taken > _SECONDS + size / _SLOWEST:
            raise ListingFailed(
                f"The body came too slowly: {size} bytes in {taken:.0f} seconds", cause=Cause.TIME
            )
        if len(block) >= _BLOCK:
            await asyncio.to_thread(stored.write, bytes(block))
            block.clear()
            await asyncio.sleep(size / _RATE - taken)
    await asyncio.to_thread(stored.write, bytes(block))
    await asyncio.to_thread(stored.finish)


class _Stored:
    """A file that takes a body as it is, up to :data:`MOST_BYTES`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0

    def write(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MOST_BYTES:
            raise BodyTooLarge(f"the body may have {MOST_BYTES} bytes at the most, decompressed")
        self._file.write(data)

    def finish(self) -> None:
        """Go to the beginning, once all has been written."""
        self._file.seek(0)


class _Unzipped(_Stored):
    """A file that takes gzip (RFC 1952) of one or more members, and decompresses it block by block."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self._member = _member()
        self._begun = False

    def write(self, data: bytes) -> None:
        while data:
            if self._member.eof:
                self._member = _member()
            self._begun = True
            try:
                super().write(self._member.decompress(data, _BLOCK))
            except zlib.error as error:
                raise _bad_gzip(f"it is not gzip: {error}") from None
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail

    def finish(self) -> None:
        if self._begun and not self._member.eof:
            raise _bad_gzip("it is cut short")
        super().finish()


def _member() -> Any:
    return zlib.decompressobj(wbits=31)


def _bad_gzip(reason: str) -> ListingFailed:
    return ListingFailed(f"The body cannot be decompressed: {reason}", cause=Cause.BAD_REQUEST)


class _StoredBody:
    """The stored body as an import reads it: piece by piece, and only while its caller waits."""

    def __init__(self, file: BinaryIO, ended: Callable[[], bool]) -> None:
        self._file = file
        self._ended = ended

    def begun(self) -> BinaryIO:
        """Go to the first object, past white space before it: names without JSON are a format of files alone."""
        head = self.read(_PIECE)
        lines = head.lstrip(b" \t\r")
        if head and not lines.partition(b"\n")[0]:
            raise ImportRefused(1, "it is empty")
        if head.startswith(BOM_UTF8):
            raise ImportRefused(1, "it begins with a byte order mark: remove it")
        if head and not lines.startswith(b"{"):
            raise ImportRefused(1, 'it is not a JSON object like {"name": "orders", "partitions": 3}')
        self._file.seek(len(head) - len(lines))
        return cast(BinaryIO, self)

    def read(self, size: int) -> bytes:
        self.check()
        pass_lock_on()
        return self._file.read(min(size, _PIECE))

    def check(self) -> None:
        """Raise if the import is to end."""
        if self._ended():
            raise _Ended("no client waits for the import any more")


def _allow(
    source: _StoredBody, ask: Ask, loop: asyncio.AbstractEventLoop, topics: Iterator[TopicName]
) -> None:
    """Ask about all these topics on the event loop; called on the importing thread."""
    some = list(islice(topics, MOST_AUTHORIZED + 1))
    if len(some) > MOST_AUTHORIZED:
        raise ListingFailed(
            f"Plugins decide about each topic here, so an import has {MOST_AUTHORIZED} topics at the most, "
            "and deletes so many: import several parts",
            cause=Cause.TOO_LARGE,
        )
    asking = asyncio.run_coroutine_threadsafe(_ask_all(ask, some), loop)
    while True:
        try:
            asking.result(_LOOK)
        except TimeoutError:
            if asking.done():
                raise
        else:
            return
        try:
            source.check()
        except _Ended:
            asking.cancel()
            raise


async def _ask_all(ask: Ask, topics: Iterable[TopicName]) -> None:
    left = iter(topics)

    async def some() -> None:
        for topic in left:
            await ask(topic)
            await asyncio.sleep(0)  # a gate that does not wait would keep others waiting

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AUTHORIZED_AT_A_TIME):
                group.create_task(some())
    except* ListingFailed as failures:
        raise failures.exceptions[0] from None
