"""One feed: asked once for all followers, with differences or without, and what is kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow as pa
import pytest

from broker_core import TopicListingResult
from broker_core.access.asker import Asker
from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import CatalogLogReader, Edit, SqliteCatalog, creation, deletion
from broker_core.concurrency.loop_turns import loop_turn
from broker_core.patterns import compile_pattern
from broker_core.pipeline import Answer, Pipeline, Trace
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.service.following import listing_feed
from broker_core.service.following.listing_feed import ListingFeed
from broker_core.service.following.recreated_topics import RecreatedTopics
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.followers import NAMESPACE, RecordingFollower, topic, unanswered
from tests.support.plugins import PluginOf


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "c.sqlite") as opened:
        opened.create(topic("first"))
        yield opened


@pytest.fixture
async def pipeline(catalog: SqliteCatalog) -> AsyncIterator[Pipeline]:
    settings = Settings.model_validate({"catalog": {"path": catalog.path}})
    async with opened_pipeline(settings) as opened:
        yield opened


@pytest.fixture
async def feed(pipeline: Pipeline) -> AsyncIterator[ListingFeed]:
    feed = ListingFeed(pipeline, ListingRequest(NAMESPACE), lambda _: frozenset(), lambda _: True)
    yield feed
    feed.close()


async def joined(feed: ListingFeed, last_hash: str | None = None) -> RecordingFollower:
    subscriber = RecordingFollower()
    await feed.refresh(subscriber.asker)
    feed.join(subscriber, last_hash)
    return subscriber


async def test_all_who_wait_share_an_answer(
    pipeline: Pipeline, feed: ListingFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[ListingRequest] = []
    answer_now = pipeline.answer_now

    def counted(request: ListingRequest) -> object:
        asked.append(request)
        return answer_now(request)

    monkeypatch.setattr(pipeline, "answer_now", counted)
    await asyncio.gather(*(feed.refresh(Asker()) for _ in range(50)))
    assert len(asked) <= 2
    assert feed.selection is not None
    assert feed.selection.names.to_pylist() == [str(topic("first"))]


async def test_a_change_of_another_pattern_moves_no_snapshot_in_a_turn_without_time(
    catalog: SqliteCatalog, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each question of many that one change woke would make a snapshot of its own."""
    pattern = compile_pattern("a/b/f.*")
    feed = ListingFeed(
        pipeline, ListingRequest(NAMESPACE, pattern=pattern), lambda _: frozenset(), lambda _: True
    )
    await feed.refresh(Asker())
    long_ways: list[ListingRequest] = []
    answer = pipeline.answer

    async def counted(request: ListingRequest, trace: Trace | None = None) -> Answer:
        long_ways.append(request)
        return await answer(request, trace)

    monkeypatch.setattr(pipeline, "answer", counted)
    catalog.create(topic("first-2"))
    await pipeline.lister.list_topics(ListingRequest(NAMESPACE))  # to which the pattern was not applied yet
    catalog.create(topic("other"))
    turn = loop_turn()

    def use_up() -> None:
        turn.has_time()
        turn._end = 0.0

    asyncio.get_running_loop().call_soon(use_up)  # in the turn in which it is asked
    await feed.refresh(Asker())
    assert feed.selection is not None
    assert feed.selection.names.to_pylist() == [str(topic("first")), str(topic("first-2"))]
    assert not long_ways
    feed.close()


async def test_changes_are_kept_for_those_that_come_back(catalog: SqliteCatalog, feed: ListingFeed) -> None:
    stays = await joined(feed)
    hashes = [feed.topics_hash]
    for number in range(70):
        catalog.create(topic(f"x{number}"))
        await feed.refresh(Asker())
        hashes.append(feed.topics_hash)
        event = stays.next()
        assert event is not None
        assert (event.before, event.after) == (hashes[-2], hashes[-1])
    missed = await joined(feed, hashes[-4])
    events = [missed.next() for _ in range(4)]
    assert [None if each is None else each.after for each in events] == [*hashes[-3:], None]
    assert not missed.lags
    assert (await joined(feed, hashes[3])).lags == 1  # too long ago
    now = await joined(feed, hashes[-1])
    assert (now.lags, now.next()) == (0, None)


async def test_a_large_difference_is_not_told_by_itself(
    catalog: SqliteCatalog, feed: ListingFeed, pipeline: Pipeline
) -> None:
    stays = await joined(feed)
    catalog.create(topic("y" * 500), partitions=2000)
    await feed.refresh(Asker())
    assert stays.lags
    assert feed.selection is not None
    assert len(feed.selection) == 2001
    assert pipeline.permits.heap.acquired == 0


async def test_it_asks_again_when_it_is_woken(catalog: SqliteCatalog, feed: ListingFeed) -> None:
    stays = await joined(feed)
    catalog.create(topic("x"))
    feed.wake()
    await eventually(lambda: stays.next() is not None)
    feed.leave(stays)
    catalog.create(topic("z"))
    feed.wake()
    again = await joined(feed, feed.topics_hash)
    assert not again.lags
    assert feed.selection is not None
    assert len(feed.selection) == 3


@pytest.mark.parametrize("by", ["this feed", "another one"])
async def test_who_comes_back_when_nobody_followed_is_told_of_other_topics_at_once_and_once(
    catalog: SqliteCatalog, pipeline: Pipeline, by: str
) -> None:
    log = CatalogLogReader(catalog)

    def new_feed() -> ListingFeed:
        recreated = RecreatedTopics(log, NAMESPACE)
        return ListingFeed(
            pipeline, ListingRequest(NAMESPACE), lambda _: frozenset(), lambda _: True, recreated
        )

    def told(subscriber: RecordingFollower) -> list[tuple[bool, bool]]:
        """Of each event, whether it has the names ``first`` and ``other``."""
        assert not subscriber.lags
        events = iter(subscriber.next, None)
        texts = (event.rendered[subscriber.renderer][0] for event in events)
        return [(b"/first" in text, b"/other" in text) for text in texts]

    feed, asked = new_feed(), new_feed()
    try:
        feed.leave(await joined(feed))
        catalog.set_properties(topic("first"), {"k": "v"})  # another version with the same names
        await asked.refresh(Asker())
        assert asked.event_id != feed.event_id
        last_id = feed.event_id if by == "this feed" else asked.event_id
        for left in ("", "other"):  # the second time, the answer is another one too
            catalog.edit_many(
                NAMESPACE,
                [
                    Edit(topic("first"), deletion(topic("first"))),
                    Edit(topic("first"), creation(topic("first"))),
                ],
            )
            if left:
                catalog.create(topic(left))
            again = RecordingFollower()
            await feed.refresh(again.asker)
            feed.join(again, last_id, await feed.recreated_since(last_id))
            assert told(again) == ([(False, True), (True, False)] if left else [(True, False)])
            assert feed.event_id != last_id
            catalog.create(topic(f"new{left}"))
            feed.wake()
            text = await eventually(again.text)
            assert text is not None
            assert "/new" in text
            assert "/first" not in text
            assert again.next() is None
            last_id = feed.event_id
            feed.leave(again)
    finally:
        await asyncio.gather(feed.stop(), asked.stop())
        log.close()


@pytest.mark.parametrize("on_failure", ["error", "next", "stale"])
async def test_a_plugin_that_fails_removes_nothing(
    tmp_path: Path, on_failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stands in for it where a client asks once."""
    monkeypatch.setattr(listing_feed, "_PAUSE", 0.01)
    names, fails = [str(topic(local)) for local in "ab"], False

    def broker_core_list_topics() -> TopicListingResult:
        if fails:
            raise RuntimeError("secret")
        return TopicListingResult.success(names)

    tables = {
        "catalog": {"path": tmp_path / "c.sqlite"},
        "plugins": {"enabled": ["lister"], "lister": {"on_failure": on_failure}},
    }
    plugin = PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: ())
    async with opened_pipeline(
        Settings.model_validate(tables), plugins={"lister": plugin}, create=True
    ) as opened:
        feed = ListingFeed(opened, ListingRequest(NAMESPACE), lambda _: frozenset(), lambda _: True)
        follower = await joined(feed)
        fails = True
        feed.wake()
        (failure,) = await eventually(lambda: follower.failures)
        assert "secret" not in failure.message
        assert feed.selection is not None
        assert feed.selection.names.to_pylist() == names
        fails, names = False, names[1:]
        feed.wake()
        assert await eventually(follower.text) == f"-{topic('a')}"
        await feed.stop()


async def test_what_a_mask_hides_is_no_change(tmp_path: Path) -> None:
    hidden = {str(topic("bills"))}

    def broker_core_visible(topics: pa.LargeStringArray) -> pa.BooleanArray:
        return pa.array([name not in hidden for name in topics.to_pylist()])

    mask = PluginOf(visible=broker_core_visible, depends_on=lambda: ())
    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    async with opened_pipeline(settings, plugins={"mask": mask}, create=True) as opened:
        feed = ListingFeed(opened, ListingRequest(NAMESPACE), lambda _: frozenset(), lambda _: True)
        follower = await joined(feed)
        with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
            for local in ("bills", "open"):
                catalog.create(topic(local))
        feed.wake()
        assert await eventually(follower.text) == str(topic("open"))
        hidden.clear()
        feed.wake()
        assert await eventually(follower.text) == str(topic("bills"))
        await feed.stop()


async def test_what_is_kept_has_permits(
    catalog: SqliteCatalog, feed: ListingFeed, pipeline: Pipeline
) -> None:
    await joined(feed)
    before = pipeline.permits.snapshots.acquired
    catalog.create(topic("x"))
    await feed.refresh(Asker())
    assert pipeline.permits.snapshots.acquired > before
    assert pipeline.permits.heap.acquired == 0


async def test_once_it_has_stopped_it_asks_no_more(
    pipeline: Pipeline, feed: ListingFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, ended = unanswered(pipeline, monkeypatch)
    waiting = asyncio.create_task(feed.refresh(Asker()))
    await asked.wait()
    waiting.cancel()
    await feed.stop()
    assert ended.is_set()
    await feed.stop()
