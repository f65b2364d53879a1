"""Imports of clients, without HTTP: files, threads, and their end."""

from __future__ import annotations

import asyncio
import errno
import gzip
import io
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import AsyncCatalog, CatalogFull, CatalogReadOnly, ImportRefused, SqliteCatalog
from broker_core.errors import Cause, ListingFailed
from broker_core.guards import Deletions
from broker_core.names import NamespaceName, TopicName
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


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data


def catalog_of(imports: TopicImports) -> AsyncCatalog:
    assert isinstance(imports._catalog, AsyncCatalog)
    return imports._catalog


def version(imports: TopicImports) -> int:
    return catalog_of(imports).file.version(NAMESPACE).number


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


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "created"),
        (b" \t\r" + LINE % 1 + b" " + LINE % 2, "created"),
        (b"new\n", "not a JSON object"),
        (b"\n" + LINE % 1, "it is empty"),
        (b" \t\r\n" + LINE % 1, "it is empty"),
        (b" ", "it is empty"),
        (b"\xef\xbb\xbf" + LINE % 1, "byte order mark"),
        (b" " + LINE % 1 + b"{\n", "line 2"),
    ],
)
async def test_a_body_begins_with_an_object(imports: TopicImports, body: bytes, reason: str) -> None:
    if reason == "created":
        assert (await imports.import_body(NAMESPACE, pieces(body))).created == body.count(b"{")
        return
    with pytest.raises(ImportRefused, match=reason):
        await imports.import_body(NAMESPACE, pieces(body))
    assert version(imports) == 0


async def test_a_body_may_be_gzip_of_some_members(
    imports: TopicImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gzip.compress(LINE % 1)
    report = await imports.import_body(NAMESPACE, pieces(whole + gzip.compress(LINE % 2)), gzip=True)
    assert report.created == 2
    for broken, reason in ((whole[:-4], "cut short"), (whole[:-9], "cut short"), (b"{}{}{}{}", "not gzip")):
        with pytest.raises(ListingFailed, match=reason):
            await imports.import_body(NAMESPACE, pieces(broken), gzip=True)
    monkeypatch.setattr(topic_imports, "MOST_BYTES", 5_000_000)
    with pytest.raises(BodyTooLarge):
        await imports.import_body(NAMESPACE, pieces(gzip.compress(b"{" + b" " * 50_000_000)), gzip=True)


async def test_so_many_imports_are_under_way(imports: TopicImports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_imports, "_PLACES", 1)
    on = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        await on.wait()
        yield LINE % 1

    first = asyncio.create_task(imports.import_body(NAMESPACE, slow()))
    await eventually(lambda: imports.under_way == 1)
    with pytest.raises(ListingFailed, match="under way") as refused:
        await imports.import_body(NAMESPACE, body())
    assert refused.value.cause is Cause.QUEUE
    on.set()
    assert (await first).created == 1


async def test_rights_are_asked_about_so_many_topics(
    imports: TopicImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_imports, "MOST_AUTHORIZED", 3)
    asked: list[str] = []

    async def ask(topic: TopicName) -> None:
        asked.append(topic.local)
        if topic.local == "t2":
            raise ListingFailed("no", cause=Cause.DENIED)

    await imports.import_body(NAMESPACE, body(2), ask=ask)
    assert sorted(asked) == ["t0", "t1"]
    with pytest.raises(ListingFailed, match="no"):
        await imports.import_body(NAMESPACE, body(3), ask=ask)
    with pytest.raises(ListingFailed, match="import several parts") as many:
        await imports.import_body(NAMESPACE, body(4), ask=ask)
    assert many.value.cause is Cause.TOO_LARGE
    asked.clear()
    await imports.import_body(NAMESPACE, body(1), ask=ask, exact=Deletions(mass=True))
    assert asked.count("t1") == 1, "and about those that go"
    assert version(imports) == 2


async def test_a_body_may_take_so_long(imports: TopicImports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_imports, "_SECONDS", -1.0)
    with pytest.raises(ListingFailed, match="too slowly") as slow:
        await imports.import_body(NAMESPACE, body())
    assert slow.value.cause is Cause.TIME
    monkeypatch.setattr(topic_imports, "_SLOWEST", 1e-3)
    assert (await imports.import_body(NAMESPACE, body())).created == 1, "a second for so many bytes"


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
    other = catalog_of(imports).file.connect()
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
    other = catalog.file.connect()
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
