"""Waking what waits: commits of any program, notices of plugins, and nothing without a reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.names import NamespaceName, TopicName
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.service.following.change_watch import ChangeWatch
from tests.support.eventually import eventually

A, B = NamespaceName("a", "a"), NamespaceName("b", "b")


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "c.sqlite") as opened:
        yield opened


@pytest.fixture
async def reader(catalog: SqliteCatalog) -> AsyncIterator[CatalogLogReader]:
    reader = CatalogLogReader(catalog)
    yield reader
    reader.close()


async def test_only_those_of_the_namespace_are_woken(
    catalog: SqliteCatalog, reader: CatalogLogReader
) -> None:
    catalog.create(TopicName("persistent", A, "before"))
    woken: list[str] = []
    watch = ChangeWatch(ChangeNotices(), reader)
    leave = [watch.watch(A, lambda: woken.append("a")), watch.watch(B, lambda: woken.append("b"))]
    leave.append(watch.watch(A, lambda: woken.append("a2")))
    watch.look()
    assert not woken
    with SqliteCatalog(catalog.path) as other:
        other.create(TopicName("persistent", A, "x"))
    watch.look()
    assert woken == ["a", "a2"]
    watch.look()
    assert len(woken) == 2
    leave[0]()
    leave[0]()
    catalog.create(TopicName("persistent", A, "y"))
    catalog.create(TopicName("persistent", B, "y"))
    await eventually(lambda: woken[2:] == ["a2", "b"])  # it looks by itself
    for each in leave:
        each()


async def test_notices_wake_at_once() -> None:
    notices, woken = ChangeNotices(), []
    watch = ChangeWatch(notices, None)
    leave = [watch.watch(each, lambda each=each: woken.append(each)) for each in (A, B)]  # type: ignore[misc]
    notices.announce(A)
    assert woken == [A]
    notices.announce(None)
    assert woken == [A, A, B]
    for each in leave:
        each()
    notices.announce(None)
    assert len(woken) == 3


async def test_a_file_that_cannot_be_read_wakes(catalog: SqliteCatalog, reader: CatalogLogReader) -> None:
    woken: list[str] = []
    watch = ChangeWatch(ChangeNotices(), reader)
    leave = watch.watch(A, lambda: woken.append("a"))
    catalog.path.unlink()
    watch.look()
    assert woken
    leave()
