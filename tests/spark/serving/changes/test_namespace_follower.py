"""Following a namespace: up to now, read once for all questions, never beyond what the log says."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from broker_core.catalog import CatalogLogReader, LogBounds, SqliteCatalog
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName, TopicName
from broker_core_spark.serving.changes.namespace_follower import NamespaceFollower
from broker_core_spark.serving.pass_to_next_lister import PassToNextLister
from tests.support.eventually import eventually
from tests.support.narrowed import present

NAMESPACE = NamespaceName.parse("public/default")
_OPTIONS: dict[str, object] = {"limit": 10_000, "timeout": 1.0}


def topic(local: str) -> TopicName:
    return TopicName.parse(f"persistent://public/default/{local}")


def follower_from(catalog: SqliteCatalog, **options: object) -> NamespaceFollower:
    return NamespaceFollower(NAMESPACE, catalog.version(NAMESPACE), **(_OPTIONS | options))  # type: ignore[arg-type]


def copied(catalog: SqliteCatalog, to: Path) -> Callable[[], None]:
    """A copy of the catalogue. The returned function writes it back into the open file."""
    copy = sqlite3.connect(to, check_same_thread=False)
    with catalog.reading() as connection:
        connection.backup(copy)

    def restore() -> None:
        into = sqlite3.connect(catalog.path)
        copy.backup(into)
        into.close()
        copy.close()

    return restore


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[SqliteCatalog]:
    opened = await asyncio.to_thread(SqliteCatalog, tmp_path / "topics.sqlite", log=LogBounds(100, 10_000))
    yield opened
    await asyncio.to_thread(opened.close)


@pytest.fixture
async def log(catalog: SqliteCatalog) -> AsyncIterator[CatalogLogReader]:
    reader = CatalogLogReader(catalog)
    yield reader
    reader.close()


class Scripted:
    """A change log that answers as a test says, and counts."""

    name = "scripted"

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.id = "one"
        self.at_once = True
        self.reads = 0
        self.gate: asyncio.Event | None = None
        self.answer: Callable[[CatalogVersion], Changes | Gap] | None = None
        self.failure: Exception | None = None

    async def catalog_id(self) -> str:
        return self.id

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:
        return CatalogVersion(self.id, self.number) if self.at_once else None

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        if self.failure is not None:
            raise self.failure
        if self.gate is not None:
            await self.gate.wait()
        return CatalogVersion(self.id, self.number)

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        if self.gate is not None:
            await self.gate.wait()
        if self.answer is not None:
            return self.answer(since)
        return Changes(since, CatalogVersion(self.id, self.number))


def scripted(log: Scripted, **options: object) -> NamespaceFollower:
    return NamespaceFollower(NAMESPACE, CatalogVersion("one", log.number), **(_OPTIONS | options))  # type: ignore[arg-type]


async def test_changes_are_seen_as_soon_as_they_are_committed(
    catalog: SqliteCatalog, log: CatalogLogReader
) -> None:
    catalog.create(topic("a"))
    follower = follower_from(catalog)
    overlay, version = await follower.current(log)
    assert (len(overlay), version.number) == (0, 1)
    catalog.create(topic("b"), partitions=2)
    catalog.delete(topic("a"))
    overlay, version = await follower.current(log)
    assert version == catalog.version(NAMESPACE)
    assert overlay.names.names.to_pylist() == [
        str(topic(name)) for name in ("a", "b-partition-0", "b-partition-1")
    ]
    assert overlay.listed.tolist() == [False, True, True]
    catalog.create(topic("a"))
    overlay, version = await follower.current(log)
    assert (overlay.listed.tolist(), version.number) == ([True, True, True], 4)
    assert overlay.versions.tolist() == [4, 2, 2]


async def test_a_gap_is_the_end(catalog: SqliteCatalog, log: CatalogLogReader) -> None:
    follower = follower_from(catalog)
    for number in range(120):  # more than the log keeps
        catalog.create(topic(str(number)))
    for _ in range(2):
        with pytest.raises(PassToNextLister, match="reaches back") as refused:
            await follower.current(log)
        assert refused.value.reason == "gap"
    assert present(follower.ended)[0] == "gap"


async def test_more_changes_than_allowed_are_the_end(catalog: SqliteCatalog, log: CatalogLogReader) -> None:
    follower = follower_from(catalog, limit=3)
    catalog.create(topic("a"), partitions=3)
    overlay, before = await follower.current(log)
    assert len(overlay) == 3
    catalog.create(topic("b"))
    with pytest.raises(PassToNextLister, match="more than 3") as refused:
        await follower.current(log)
    assert refused.value.reason == "overlay_limit"
    # The last known state stays, for stale answers.
    assert (len(follower.overlay), follower.version) == (3, before)


async def test_many_changes_at_once_are_taken_in_a_thread(
    catalog: SqliteCatalog, log: CatalogLogReader
) -> None:
    follower = follower_from(catalog)
    catalog.create(topic("a"), partitions=2000)
    overlay, _ = await follower.current(log)
    assert len(overlay) == 2000


async def test_another_catalogue_is_not_followed() -> None:
    log = Scripted(5)
    follower = scripted(log)
    log.id = "two"
    with pytest.raises(PassToNextLister, match="by now") as refused:
        await follower.current(log)
    assert refused.value.reason == "other_catalogue"
    log.id = "one"
    await follower.current(log)  # it is back


async def test_a_catalogue_that_is_another_once_its_changes_are_read_is_not_followed() -> None:
    log = Scripted(5)
    follower = scripted(log)
    log.number = 6
    log.answer = lambda since: Gap(since, CatalogVersion("two", 1), "the version is of another catalogue")
    with pytest.raises(PassToNextLister) as refused:
        await follower.current(log)
    assert refused.value.reason == "other_catalogue"
    assert follower.ended is None


async def test_a_copy_from_before_the_generation_is_the_end() -> None:
    log = Scripted(5)
    follower = scripted(log)
    log.number = 4
    with pytest.raises(PassToNextLister, match="older than the generation"):
        await follower.current(log)
    log.number = 7  # changes since version 4 may be others than before
    with pytest.raises(PassToNextLister):
        await follower.current(log)


async def test_a_copy_from_after_the_generation_is_read_from_there() -> None:
    log = Scripted(5)
    follower = scripted(log)
    log.number = 9
    assert (await follower.current(log))[1].number == 9
    log.number = 7
    requested: list[int] = []

    def answer(since: CatalogVersion) -> Changes:
        requested.append(since.number)
        return Changes(since, CatalogVersion("one", 7))

    log.answer = answer
    assert (await follower.current(log))[1].number == 7
    assert requested == [5]


async def test_changes_are_read_once_for_all_who_ask() -> None:
    log = Scripted(1)
    follower = scripted(log, timeout=30.0)
    log.number, log.gate = 2, asyncio.Event()
    tasks = [asyncio.create_task(follower.current(log)) for _ in range(50)]
    await eventually(lambda: log.reads == 1)
    tasks[0].cancel()  # the question that began the read
    log.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert {result[1].number for result in results[1:]} == {2}  # type: ignore[index]
    assert log.reads == 1


async def test_who_asks_after_a_commit_is_not_answered_by_an_earlier_read() -> None:
    log = Scripted(1)
    follower = scripted(log, timeout=30.0)
    log.number, log.gate = 2, asyncio.Event()
    log.answer = lambda since: Changes(since, CatalogVersion("one", 2 if log.reads == 1 else 3))
    first = asyncio.create_task(follower.current(log))
    await eventually(lambda: log.reads == 1)
    log.number = 3
    second = asyncio.create_task(follower.current(log))
    log.gate.set()
    assert (await first)[1].number in {2, 3}
    assert (await second)[1].number == 3
    assert log.reads == 2


async def test_a_log_that_hangs_or_fails_is_not_waited_for() -> None:
    log = Scripted(1)
    follower = scripted(log, timeout=0.01)
    log.at_once, log.gate = False, asyncio.Event()
    with pytest.raises(PassToNextLister, match=r"within 0\.01 s") as refused:
        await follower.current(log)
    assert refused.value.reason == "unreachable"
    log.at_once, log.number = True, 2
    with pytest.raises(PassToNextLister, match=r"within 0\.01 s"):
        await follower.current(log)
    follower._timeout = 60.0  # what follows is answered
    log.gate, log.failure = None, ListingFailed("the database is gone")
    with pytest.raises(PassToNextLister, match="the database is gone") as refused:
        await follower.current(log)
    assert refused.value.reason == "unreachable"
    log.failure = None
    log.answer = lambda since: Changes(since, since)  # a replica that lags behind
    with pytest.raises(PassToNextLister, match="yet"):
        await follower.current(log)
    log.answer = None
    assert (await follower.current(log))[1].number == 2
    assert follower.current_at <= asyncio.get_running_loop().time()


async def test_a_version_that_a_restored_copy_comes_to_again_is_another_one(
    catalog: SqliteCatalog, log: CatalogLogReader, tmp_path: Path
) -> None:
    await asyncio.to_thread(catalog.create, topic("kept"))
    restore = await asyncio.to_thread(copied, catalog, tmp_path / "copy.sqlite")
    before = follower_from(catalog)
    await asyncio.to_thread(catalog.create, topic("lost"))
    followers = [follower_from(catalog) for _ in range(2)]
    assert len((await before.current(log))[0]) == 1
    await asyncio.to_thread(restore)
    for number, follower in enumerate(followers):
        # The first number is that of the generation, the second one is beyond it.
        await asyncio.to_thread(catalog.create, topic(f"new-{number}"))
        with pytest.raises(PassToNextLister, match="restored"):
            await follower.current(log)
        assert present(follower.ended)[0] == "gap"
        overlay, version = await before.current(log)
        assert version.same_state(catalog.version(NAMESPACE))
        names = {str(topic(f"new-{made}")) for made in range(number + 1)}
        assert set(overlay.names.names.to_pylist()) == names
    assert before.restarts == 1
