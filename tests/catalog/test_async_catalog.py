from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from broker_core.catalog import (
    AsyncCatalog,
    CatalogBusy,
    Edit,
    SqliteCatalog,
    TopicWrite,
    async_catalog,
    creation,
)
from broker_core.errors import Cause, ListingFailed
from broker_core.names import TopicName
from tests.support.clock import AGES, time_passes, time_stands
from tests.support.narrowed import of_type, present


@pytest.fixture
async def turns(catalog: SqliteCatalog) -> AsyncIterator[AsyncCatalog]:
    made = AsyncCatalog(catalog)
    try:
        yield made
    finally:
        await asyncio.to_thread(made.close)


async def test_changes_are_made_one_after_the_other_in_their_order(turns: AsyncCatalog) -> None:
    made: list[tuple[int, str]] = []

    def change(number: int, _wait: float) -> None:
        made.append((number, threading.current_thread().name))

    await asyncio.gather(*(turns._in_turn(partial(change, number)) for number in range(20)))
    assert [number for number, _ in made] == list(range(20))
    assert len({name for _, name in made}) == 1


async def test_a_change_gets_the_seconds_that_are_left(
    turns: AsyncCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time_stands(monkeypatch)
    assert await turns._in_turn(lambda wait: wait) == pytest.approx(5)
    assert await turns._in_turn(lambda wait: wait, now + 1000) == pytest.approx(5)
    assert await turns._in_turn(lambda wait: wait, now + 2) == pytest.approx(2)


async def test_what_waits_beyond_its_deadline_is_not_made(
    turns: AsyncCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_catalog, "_PATIENCE", 2 * AGES)
    made: list[str] = []
    begun, free = threading.Event(), threading.Event()

    def waits(_wait: float) -> None:
        begun.set()
        free.wait()
        made.append("first")

    then = asyncio.get_running_loop().time() + AGES
    first = asyncio.create_task(turns._in_turn(waits, then))
    await asyncio.to_thread(begun.wait)
    second = asyncio.create_task(turns._in_turn(lambda _wait: made.append("second"), then))
    await asyncio.sleep(0)
    time_passes(monkeypatch, AGES + 1)
    with pytest.raises(CatalogBusy):
        await second
    free.set()
    await first  # it had begun
    assert made == ["first"]


async def test_so_many_may_wait(turns: AsyncCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_catalog, "_MOST_WAITING", 1)
    ended = await asyncio.gather(*(turns._in_turn(lambda _wait: 1) for _ in "ab"), return_exceptions=True)
    assert ended[0] == 1
    assert of_type(ended[1], ListingFailed).cause is Cause.QUEUE
    assert await turns._in_turn(lambda _wait: 2) == 2


async def test_what_is_cancelled_in_the_queue_is_not_made(turns: AsyncCatalog) -> None:
    made: list[str] = []
    free = threading.Event()

    def waits(_wait: float) -> None:
        free.wait()
        made.append("first")

    first = asyncio.create_task(turns._in_turn(waits))
    second = asyncio.create_task(turns._in_turn(lambda _wait: made.append("second")))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    free.set()
    await first
    assert made == ["first"]


async def test_a_cancelled_caller_hears_of_a_change_that_has_begun(turns: AsyncCatalog) -> None:
    begun, free = threading.Event(), threading.Event()

    def change(_wait: float) -> str:
        begun.set()
        free.wait()
        return "made"

    task = asyncio.create_task(turns._in_turn(change))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    asyncio.get_running_loop().call_soon(free.set)
    assert await task == "made"


X = TopicName.parse("persistent://acme/shop/x.y")
P = TopicName.parse(f"{X}-partition-1")


async def test_topics_are_read_and_changed(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "topics.sqlite") as file, contextlib.closing(AsyncCatalog(file)) as catalog:
        (write,) = await catalog.edit(X.namespace, [Edit(X, creation(X, 2))])
        assert isinstance(write, TopicWrite)
        there = present(write.after)
        assert file.version(X.namespace) == write.version
        assert file.topic(X) == file.topic(P) == there
        assert await catalog.found([P, X]) == [(there, 0), (there, 2)]
        assert catalog.found_now([X]) is None
        assert catalog.topics_by_id_now([there.topic_id]) is None
        assert await catalog.topics_by_id([there.topic_id]) == [there]
        assert file.taken_names(X.namespace, ["x_y", "z"]) == {"x_y": "x.y"}
        assert catalog.counts.count([X.namespace])[0].names == (2, 0)
