"""One watcher whose client reads, reads slowly, or gets nothing for a while: it never has a wrong set."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.access.asker import Asker
from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.errors import ListingFailed
from broker_core.listing.listing import Selection
from broker_core.names import NamespaceName, TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.service import AnswerChange, ListingFeeds, Watcher
from broker_core.service.following import difference_pieces, watcher
from broker_core.settings import Settings
from tests.support.eventually import eventually

NAMESPACE = NamespaceName("a", "b")


class Texts:
    """Updates as the names that come, those that go behind a minus, and the hash."""

    def changed(self, change: AnswerChange) -> tuple[bytes, ...] | None:
        if len(change.added) + len(change.removed) > 5:
            return None
        gone = [f"-{name}" for name in change.removed.names.to_pylist()]
        return (",".join([*change.added.names.to_pylist(), *gone, change.topics_hash]).encode(),)

    def recreated(self, _names: Selection, _event_id: str) -> tuple[bytes, ...]:
        return ()


TEXTS = Texts()


class Client:
    """The outlet of a watcher; ``places`` are updates that it has room for."""

    def __init__(self) -> None:
        self.asker = Asker()
        self.places = 1000
        self.has_unread = True
        self.topics: set[str] = set()
        self.told: list[str] = []
        self.closed: list[str] = []
        self._room = asyncio.Event()

    def write(self, _watcher_id: int, update: bytes) -> bool:
        if not self.places:
            return False
        self.places -= 1
        *names, topics_hash = update.decode().split(",")
        for name in names:
            if name.startswith("-"):
                self.topics.remove(name[1:])
            else:
                assert name not in self.topics
                self.topics.add(name)
        self.told.append(topics_hash)
        return True

    async def room(self) -> None:
        while not self.places:
            self._room.clear()
            await self._room.wait()

    def reads(self, places: int = 1000) -> None:
        self.places = places
        self._room.set()

    def close(self, reason: str, _event: str) -> None:
        self.closed.append(reason)


class Scene:
    """A watcher of all topics of a catalogue."""

    def __init__(self, catalog: SqliteCatalog, feeds: ListingFeeds) -> None:
        self.catalog, self.feeds, self.client = catalog, feeds, Client()
        self.watcher = Watcher(feeds, self.client, TEXTS, 7)

    async def open(self) -> None:
        selection, _ = await self.watcher.open(ListingRequest(NAMESPACE, asker=self.client.asker))
        self.client.topics = set(selection.names.to_pylist())
        self.watcher.opened(selection)

    def create(self, *locals_: str) -> None:
        for local in locals_:
            self.catalog.create(TopicName("persistent", NAMESPACE, local))

    def delete(self, local: str) -> None:
        self.catalog.delete(TopicName("persistent", NAMESPACE, local))

    async def refresh(self) -> None:
        feed = self.watcher._feed
        assert feed is not None
        await feed.refresh(self.client.asker)

    def topics(self) -> set[str]:
        with self.catalog.topics(NAMESPACE) as (_, records):
            return {name for record in records for name in record.names}

    async def is_right(self) -> None:
        await eventually(lambda: self.client.topics == self.topics() and self.watcher.is_up_to_date)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(TopicName("persistent", NAMESPACE, "first"))
        async with opened_pipeline(settings) as pipeline:
            log = CatalogLogReader(catalog)
            feeds = ListingFeeds(pipeline, log)
            scene = Scene(catalog, feeds)
            yield scene
            scene.watcher.leave()
            await feeds.stop()
            log.close()


async def test_each_change_is_told_as_it_comes(scene: Scene) -> None:
    await scene.open()
    for local in "abc":
        scene.create(local)
        await scene.refresh()
    scene.delete("b")
    await scene.refresh()
    assert scene.client.topics == scene.topics()
    assert len(scene.client.told) == 4


async def test_what_changes_while_the_answer_is_on_its_way_comes_after_it(scene: Scene) -> None:
    selection, _ = await scene.watcher.open(ListingRequest(NAMESPACE, asker=scene.client.asker))
    scene.create("a", "b")
    await scene.refresh()
    scene.delete("first")
    await scene.refresh()
    assert not scene.client.told
    scene.client.topics = set(selection.names.to_pylist())
    scene.watcher.opened(selection)
    await scene.is_right()
    assert len(scene.client.told) == 1


async def test_a_large_change_comes_in_pieces(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(difference_pieces, "_PIECE", 60)
    monkeypatch.setattr(difference_pieces, "MOST", 200)
    monkeypatch.setattr("broker_core.service.following.listing_feed.MOST", 200)
    await scene.open()
    scene.create(*(f"t{number}" for number in range(40)))
    await scene.refresh()
    await scene.is_right()
    assert len(scene.client.told) > 10


async def test_a_slow_client_is_told_one_difference_and_closed_when_it_is_slow_again(scene: Scene) -> None:
    await scene.open()
    scene.client.places = 1
    for local in "abcd":
        scene.create(local)
        await scene.refresh()
    scene.delete("a")
    await scene.refresh()
    assert len(scene.client.told) == 1
    assert not scene.watcher.is_up_to_date
    assert scene.watcher.stands() is None
    scene.client.reads(1)
    await scene.is_right()
    assert len(scene.client.told) == 2
    assert not scene.client.closed
    scene.create("e")
    await scene.refresh()
    assert scene.client.closed == ["slow"]


async def three_changes_find_no_room_at_first(scene: Scene) -> None:
    for local in "abc":
        scene.client.places = 0
        scene.create(local)
        await scene.refresh()
        scene.client.reads()
        await scene.is_right()


async def test_a_client_is_not_slow_if_others_have_the_room(scene: Scene) -> None:
    await scene.open()
    scene.client.has_unread = False
    await three_changes_find_no_room_at_first(scene)
    assert not scene.client.closed


async def test_a_client_that_is_slow_now_and_then_is_not_closed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "_SLOW_AGAIN", 0.0)
    await scene.open()
    await three_changes_find_no_room_at_first(scene)
    assert not scene.client.closed


async def test_reconciling_while_it_is_behind_tells_all_whatever_the_hash(scene: Scene) -> None:
    await scene.open()
    scene.client.places = 0
    scene.create("a")
    await scene.refresh()
    scene.delete("a")  # the client's hash is that of now again
    selection, _, up_to_date = await scene.watcher.reconcile()
    assert not up_to_date
    scene.client.topics = set(selection.names.to_pylist())
    scene.client.reads()
    scene.watcher.opened(selection)
    await scene.is_right()
    _, topics_hash, up_to_date = await scene.watcher.reconcile()
    assert up_to_date
    scene.watcher.opened(None)  # the answer could not be sent: it has what it had
    scene.create("b")
    await scene.refresh()
    await scene.is_right()
    assert scene.client.told[-1] != topics_hash


async def test_while_a_gate_fails_nothing_is_told_and_then_the_difference(scene: Scene) -> None:
    await scene.open()
    scene.watcher.suspend(ListingFailed("gate"))
    for local in "ab":
        scene.create(local)
        await scene.refresh()
    assert not scene.client.told
    scene.watcher.resume()
    await scene.is_right()
    assert len(scene.client.told) == 1


async def test_what_ends_it_closes_the_connection(scene: Scene) -> None:
    await scene.open()
    scene.watcher.end(ListingFailed("no right"))
    scene.watcher.select_by_properties()
    scene.feeds.close()
    assert scene.client.closed == ["watch_ended"] * 3


async def test_one_that_was_closed_while_it_was_opened_follows_nothing(scene: Scene) -> None:
    scene.watcher.leave()
    with pytest.raises(ListingFailed):
        await scene.open()
    assert not any(feed.followers for feed in scene.feeds._feeds.values())
