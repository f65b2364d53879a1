"""One watcher whose client reads, reads slowly, or gets nothing for a while: it never has a wrong set."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from broker_core.access.asker import Asker
from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.errors import ListingFailed
from broker_core.listing.listing import Selection
from broker_core.memory import Permit, PermitBudget, Permits
from broker_core.names import NamespaceName, TopicName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.service import AnswerChange, ListingFeeds, Watcher
from broker_core.service.following import follower, listing_feed, watcher
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.examples import examples

NAMESPACE = NamespaceName("a", "b")


class Texts:
    """Updates as the names that come, those that go behind a minus, and the hash; of ``most`` names."""

    def __init__(self, most: int = 5) -> None:
        self._most = most

    def changed(self, change: AnswerChange) -> tuple[bytes, ...] | None:
        if len(change.added) + len(change.removed) > self._most:
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

    def __init__(self, catalog: SqliteCatalog, pipeline: Pipeline, feeds: ListingFeeds) -> None:
        self.catalog, self.pipeline, self.feeds, self.client = catalog, pipeline, feeds, Client()
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
            scene = Scene(catalog, pipeline, feeds)
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
    monkeypatch.setattr(follower, "_PIECE", 60)
    monkeypatch.setattr(follower, "MOST_JOINED", 200)
    monkeypatch.setattr("broker_core.service.following.listing_feed.MOST_JOINED", 200)
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
    assert scene.watcher.up_to_date_now() is None
    scene.client.reads(1)
    await scene.is_right()
    assert len(scene.client.told) == 2
    assert not scene.client.closed
    scene.create("e")
    await scene.refresh()
    assert scene.client.closed == ["slow"]


@pytest.mark.parametrize("full", [False, True], ids=["room in heap", "no room"])
async def test_a_full_cache_of_snapshots_keeps_no_client_at_an_old_set(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    await scene.open()
    permits = scene.pipeline.permits
    scene.client.places = 0
    scene.create("a", "b")
    await scene.refresh()
    monkeypatch.setattr(type(permits.snapshots), "try_acquire", no_snapshots(permits, heap=not full))
    monkeypatch.setattr(follower, "_MOST_SHORT", 0.0)
    scene.client.reads()
    if full:
        await eventually(lambda: scene.client.closed == ["watch_ended"])
    else:
        await scene.is_right()
        assert not scene.client.closed


def no_snapshots(permits: Permits, *, heap: bool) -> Callable[[PermitBudget, int], Permit | None]:
    """``try_acquire`` of budgets of which the one of snapshots is full, and that of requests too unless ``heap``."""
    acquire = PermitBudget.try_acquire

    def try_acquire(budget: PermitBudget, size: int) -> Permit | None:
        is_full = budget is permits.snapshots or (budget is permits.heap and not heap)
        return None if is_full else acquire(budget, size)

    return try_acquire


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


class Many:
    """Watchers of all topics of a scene; a change is given to one at a time."""

    def __init__(self, scene: Scene, count: int) -> None:
        self.scene = scene
        self.clients = [Client() for _ in range(count)]
        texts = Texts(most=1000)
        self.watchers = [Watcher(scene.feeds, client, texts, 7) for client in self.clients]

    async def open(self) -> None:
        for client, each in zip(self.clients, self.watchers, strict=True):
            selection, _ = await each.open(ListingRequest(NAMESPACE, asker=client.asker))
            client.topics = set(selection.names.to_pylist())
            each.opened(selection)

    async def are_right(self) -> None:
        def is_right(client: Client, each: Watcher) -> bool:
            return client.topics == self.scene.topics() and each.is_up_to_date

        await eventually(lambda: all(map(is_right, self.clients, self.watchers)))


@pytest.fixture
async def many(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Many]:
    monkeypatch.setattr(listing_feed, "_AT_ONCE", 1)
    many = Many(scene, 12)
    await scene.open()
    await many.open()
    yield many
    for each in many.watchers:
        each.leave()


async def test_many_are_told_in_turns_with_others(many: Many) -> None:
    scene = many.scene
    scene.create("a")
    await scene.refresh()
    told = [len(client.told) for client in many.clients]
    assert told[-1] == 0, "the last one was told before anybody else had a turn"
    assert not many.watchers[-1].is_up_to_date
    assert many.watchers[-1].up_to_date_now() is None
    await many.are_right()
    assert [len(client.told) for client in many.clients] == [1] * 12


async def test_those_that_wait_to_be_told_may_meanwhile_ask_leave_or_miss_a_further_change(
    many: Many,
) -> None:
    scene, (one, two, three, *_) = many.scene, many.watchers[::-1]
    scene.create("a")
    await scene.refresh()
    asked, gone = many.clients[-1], many.clients[-2]
    selection, _, is_known = await one.reconcile()
    asked.topics = set(selection.names.to_pylist())
    assert not is_known
    two.leave()
    three.suspend(ListingFailed("gate"))
    scene.delete("first")
    await scene.refresh()
    one.opened(selection)
    three.resume()
    del many.watchers[-2], many.clients[-2]
    await many.are_right()
    assert not gone.told


@pytest.mark.parametrize("seed", range(examples(4)))
async def test_whatever_happens_while_they_wait_each_has_all_topics_once(many: Many, seed: int) -> None:
    chance, scene, made = random.Random(seed), many.scene, ["first"]
    for number in range(120):
        at = chance.randrange(len(many.watchers))
        client, each = many.clients[at], many.watchers[at]
        match chance.randrange(9):
            case 0 | 1:
                made.append(f"t{number}")
                scene.create(made[-1])
                await scene.refresh()
            case 2 if len(made) > 1:
                scene.delete(made.pop(chance.randrange(len(made))))
                await scene.refresh()
            case 3:
                selection, _, _ = await each.reconcile()
                if chance.random() < 0.3:
                    each.opened(None)  # the answer could not be sent
                else:
                    client.topics = set(selection.names.to_pylist())
                    await asyncio.sleep(0)
                    each.opened(selection)
            case 4:
                client.has_unread = False
                client.places = chance.randrange(2)
            case 5:
                client.reads()
            case 6:
                each.suspend(ListingFailed("gate"))
            case 7:
                each.resume()
            case _:
                for _ in range(chance.randrange(20)):
                    await asyncio.sleep(0)
    for client, each in zip(many.clients, many.watchers, strict=True):
        each.resume()
        client.reads()
    await many.are_right()
    assert not any(client.closed for client in many.clients)
