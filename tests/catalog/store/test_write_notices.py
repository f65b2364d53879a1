"""Notices of writes to the catalogue: of each commit by any connection, of another file in its place, and no others."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.store.change_log_reader import WriteNotices
from broker_core.names import NamespaceName, TopicName
from tests.support.catalogue_topics import create_topics
from tests.support.eventually import eventually

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")

A = NamespaceName("a", "a")


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "c.sqlite") as opened:
        opened.create(TopicName("persistent", A, "first"))
        yield opened


async def test_each_commit_is_reported_once_to_all_that_wait(catalog: SqliteCatalog) -> None:
    notices, told = WriteNotices(catalog.path), []
    assert notices.next("one", lambda: told.append("not this"))
    assert notices.next("one", lambda: told.append("one"))
    assert notices.next("two", lambda: told.append("two"))
    assert notices.next("gone", lambda: told.append("gone"))
    notices.forget("gone")
    with SqliteCatalog(catalog.path) as other:
        other.create(TopicName("persistent", A, "x"))
        await eventually(lambda: told == ["one", "two"])
        other.create(TopicName("persistent", A, "y"))  # nobody waits for it
        assert notices.next("one", lambda: told.append("later"))
        other.version(A)
        (catalog.path.parent / "beside.txt").write_text("no write of the catalogue")
        other.create(TopicName("persistent", A, "z"))
        await eventually(lambda: told == ["one", "two", "later"])
    notices.close()
    assert not notices.next("one", lambda: told.append("closed"))


async def test_reading_is_not_reported(catalog: SqliteCatalog) -> None:
    notices, told = WriteNotices(catalog.path), []
    assert notices.next("one", lambda: told.append("one"))
    with catalog.reading() as connection:
        connection.execute("SELECT count(*) FROM topics").fetchone()
    written = asyncio.Event()
    others = WriteNotices(catalog.path.parent / "other")
    for end in ("", "-wal"):
        (catalog.path.parent / f"other{end}").touch()
    assert others.next("other", written.set)
    (catalog.path.parent / "other").write_text("x")
    await written.wait()  # it would have come before
    assert not told
    notices.close()
    others.close()


async def test_a_file_in_its_place_is_reported_and_watched(catalog: SqliteCatalog, tmp_path: Path) -> None:
    create_topics(tmp_path / "new.sqlite", TopicName("persistent", A, "x"))
    notices, told = WriteNotices(catalog.path), []
    assert notices.next("one", lambda: told.append("replaced"))
    (tmp_path / "new.sqlite").replace(catalog.path)
    await eventually(lambda: told == ["replaced"])
    assert notices.next("one", lambda: told.append("written"))
    with catalog.path.open("ab") as file:
        file.write(b"\0")
    await eventually(lambda: told == ["replaced", "written"])
    notices.close()


async def test_a_file_without_a_log_is_not_watched(tmp_path: Path) -> None:
    (tmp_path / "alone").touch()
    notices = WriteNotices(tmp_path / "alone")
    assert not notices.next("one", lambda: None)
    notices.close()
