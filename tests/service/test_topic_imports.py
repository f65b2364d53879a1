"""Imports of clients, without HTTP: files, threads, and who ends them."""

from __future__ import annotations

import asyncio
import errno
import io
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import AsyncCatalog, CatalogFull, CatalogReadOnly, SqliteCatalog
from broker_core.errors import Cause, ListingFailed
from broker_core.names import NamespaceName
from broker_core.service import topic_imports
from broker_core.service.topic_imports import BodyTooLarge, TopicImports
from tests.support.eventually import eventually

NAMESPACE = NamespaceName("a", "b")
LINE = b'{"name": "t%d"}\n'


@pytest.fixture
async def imports(tmp_path: Path) -> AsyncIterator[TopicImports]:
    with SqliteCatalog(tmp_path / "topics.sqlite") as file:
        catalog = AsyncCatalog(file)
        try:
            yield TopicImports(catalog)
        finally:
            await asyncio.to_thread(catalog.close)


async def body(topics: int = 1) -> AsyncIterator[bytes]:
    for number in range(topics):
        yield LINE % number


def catalog_of(imports: TopicImports) -> AsyncCatalog:
    assert isinstance(imports._catalog, AsyncCatalog)
    return imports._catalog


def version(imports: TopicImports) -> int:
    return catalog_of(imports)._file.version(NAMESPACE).number


async def test_a_body_of_many_blocks(imports: TopicImports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_imports, "_BLOCK", 100)
    monkeypatch.setattr(topic_imports, "_PIECE", 70)
    report = await imports.import_body(NAMESPACE, body(500))
    assert (report.created, report.version.number) == (500, 1)
    assert imports.under_way == 0


async def test_a_body_may_be_so_large(imports: TopicImports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_imports, "MOST_BYTES", 100)
    with pytest.raises(BodyTooLarge, match="100 bytes"):
        await imports.import_body(NAMESPACE, body(50))
    assert version(imports) == 0


async def test_a_body_may_take_so_long(imports: TopicImports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_imports, "_SECONDS", -1.0)
    with pytest.raises(ListingFailed, match="too slowly") as slow:
        await imports.import_body(NAMESPACE, body())
    assert slow.value.cause is Cause.TIME


async def test_a_file_is_closed_that_is_opened_for_a_client_that_is_gone(
    imports: TopicImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[io.BytesIO] = []
    go_on = threading.Event()

    def open_late() -> io.BytesIO:
        go_on.wait(30)
        opened.append(io.BytesIO())
        return opened[0]

    monkeypatch.setattr(imports, "_open", open_late)
    task = asyncio.create_task(imports.import_body(NAMESPACE, body()))
    await eventually(lambda: imports.under_way == 1)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    go_on.set()
    await eventually(lambda: bool(opened) and opened[0].closed)
    assert imports.under_way == 0


async def test_a_cancelled_import_ends(imports: TopicImports) -> None:
    other = catalog_of(imports)._file.connect()
    other.execute("BEGIN IMMEDIATE")
    task = asyncio.create_task(imports.import_body(NAMESPACE, body(2000)))
    waiting = asyncio.create_task(imports.import_body(NAMESPACE, body(2000)))
    await eventually(lambda: catalog_of(imports)._importing._work_queue.qsize() == 1)
    for each in (task, waiting):
        each.cancel()
        with pytest.raises(asyncio.CancelledError):
            await each
    assert imports.under_way == 0
    other.execute("ROLLBACK")
    other.close()
    await imports.import_body(NAMESPACE, body())
    assert version(imports) == 1, "the first one ended as soon as it could write"


class _Full(io.BytesIO):
    def write(self, _data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


async def test_a_full_disk(imports: TopicImports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: _Full())
    with pytest.raises(CatalogFull):
        await imports.import_body(NAMESPACE, body())
    assert version(imports) == 0


async def test_a_folder_that_cannot_be_written(
    imports: TopicImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(CatalogReadOnly):
        await imports.import_body(NAMESPACE, body())


async def test_a_server_that_stops_ends_what_is_under_way(imports: TopicImports) -> None:
    catalog = catalog_of(imports)
    other = catalog._file.connect()
    other.execute("BEGIN IMMEDIATE")
    task = asyncio.create_task(imports.import_body(NAMESPACE, body(2000)))
    threads = catalog._importing
    await eventually(lambda: bool(threads._threads) and not threads._work_queue.qsize())
    imports.close()
    closing = asyncio.create_task(asyncio.to_thread(catalog.close))
    other.execute("ROLLBACK")
    other.close()
    with pytest.raises(ListingFailed, match="nothing was changed"):
        await task
    await closing
    assert version(imports) == 0
