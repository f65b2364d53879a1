"""Listing from live snapshots: its principals, its age, and what is asked of the cluster itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.listing.listing import Listing
from broker_core.listing.listing_hash import topics_hash
from broker_core.memory.permits import Permits
from broker_core.names import Mode
from broker_core.patterns import compile_pattern
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.upstream.snapshots import ONE_BROKER, LiveSnapshots, SnapshotLister
from broker_core.upstream.snapshots.snapshot_log import ViewOfNamespace
from tests.support.clock import time_passes
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.memory_store import NAMES, NAMESPACE, OTHERS, MemoryStore


class Scene:
    def __init__(self, *, has_verdicts: bool = False, **options: Any) -> None:
        self.store = MemoryStore(has_verdicts=has_verdicts)
        self.direct = MemoryLister(["persistent://t/n/direct"])
        self.changed: list[Any] = []
        live = LiveSnapshots(self.store, Permits(), self.changed.append)
        self.lister = SnapshotLister(self.store, live, self.direct, max_age=60.0, **options)

    async def names(self, asker: Asker, mode: Mode = Mode.PERSISTENT, **question: Any) -> set[str]:
        request = ListingRequest(NAMESPACE, mode, asker=asker, **question)
        result = self.lister.list_now(request) or await self.lister.list_topics(request)
        assert isinstance(result.topics, Listing)
        return set(result.topics.names.to_pylist())

    def has_now(self, asker: Asker, **question: Any) -> bool:
        return self.lister.list_now(ListingRequest(NAMESPACE, asker=asker, **question)) is not None


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    await made.lister.close()


@pytest.fixture
async def shared() -> AsyncIterator[Scene]:
    made = Scene(has_verdicts=True)
    yield made
    await made.lister.close()


async def test_each_principal_has_its_own_listing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Asker("one"), Asker("two")
    assert await scene.names(one) == set(NAMES)
    scene.store.names[Mode.PERSISTENT] = NAMES[:1]
    assert not scene.has_now(two)
    assert await scene.names(two) == set(NAMES[:1])
    assert await scene.names(one) == set(NAMES)
    assert [view for view, *_ in scene.store.asked] == ["one", "two"]


async def test_one_listing_for_all_whom_the_cluster_lets(
    shared: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.store.denied = {"three"}
    one, two, three = Asker("one"), Asker("two"), Asker("three")
    for _ in range(3):
        assert await shared.names(one) == set(NAMES)
        time_passes(monkeypatch, 1)
        assert await shared.names(two) == set(NAMES)
        with pytest.raises(ListingFailed) as failed:
            await shared.names(three)
        assert failed.value.cause is Cause.DENIED
    assert [view for view, *_ in shared.store.asked] == ["shared"] * 2, "the first on each connection"
    assert [role for role, _ in shared.store.verdicts].count("one") == 1
    time_passes(monkeypatch, 61)
    shared.store.denied = {"one"}
    with pytest.raises(ListingFailed):
        await shared.names(one)
    assert await shared.names(two) == set(NAMES)


async def test_a_verdict_is_asked_once_for_all_who_wait(shared: Scene) -> None:
    shared.store.gate.clear()
    asked = [asyncio.create_task(shared.names(Asker("one"))) for _ in range(10)]
    await eventually(lambda: len(shared.store.verdicts) == 1)
    shared.store.gate.set()
    assert await asyncio.gather(*asked) == [set(NAMES)] * 10
    assert len(shared.store.verdicts) == 1


async def test_polls_ask_the_cluster_once_in_max_age(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    askers = [Asker("one") for _ in range(100)]
    for _ in range(3):
        await asyncio.gather(*(scene.names(asker) for asker in askers))
        asked = len(scene.store.asked)
        for _ in range(10):
            assert all(scene.has_now(asker) for asker in askers)
        assert len(scene.store.asked) == asked
        time_passes(monkeypatch, 61)
    assert len(scene.store.asked) == 3


async def test_the_first_listing_of_a_connection_is_of_after_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Asker("one")
    await scene.names(old)
    scene.store.names[Mode.PERSISTENT] = [*NAMES, "persistent://t/n/new"]
    time_passes(monkeypatch, 5)
    assert await scene.names(old) == set(NAMES), "as old as it may be"
    new = Asker("one")
    assert not scene.has_now(new)
    assert len(await scene.names(new)) == len(NAMES) + 1
    assert scene.has_now(new)
    assert len(await scene.names(old)) == len(NAMES) + 1


async def test_a_hash_of_another_gateway_waits_too(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    asker = Asker("one")
    await scene.names(asker)
    scene.lister.gave(NAMESPACE, "01234567")
    newer = [*NAMES, "persistent://t/n/new"]
    scene.store.names[Mode.PERSISTENT] = newer
    time_passes(monkeypatch, 5)
    assert scene.has_now(asker, topics_hash="01234567")
    assert not scene.has_now(asker, topics_hash=topics_hash(newer))
    assert await scene.names(asker, topics_hash=topics_hash(newer)) == set(newer)


async def test_a_client_that_comes_from_another_gateway_is_caught_up_with(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asker = Asker("one")
    await scene.names(asker)
    newer = [*NAMES, "persistent://t/n/new"]
    scene.store.names[Mode.PERSISTENT] = newer
    for known, told in ((True, topics_hash(NAMES)), (False, topics_hash(newer))):
        if known:
            scene.lister.gave(NAMESPACE, told)
        time_passes(monkeypatch, 5)
        await scene.lister.catch_up(ListingRequest(NAMESPACE, asker=asker, topics_hash=told))
        assert len(scene.store.asked) == (1 if known else 2)
    assert await scene.names(asker) == set(newer)
    ahead = compile_pattern("persistent://t/n/(?!x).*")
    await scene.lister.catch_up(ListingRequest(NAMESPACE, asker=Asker("two"), pattern=ahead))
    assert not scene.direct.asked


async def test_what_only_the_cluster_can_answer() -> None:
    scene = Scene(depends_on=frozenset({"properties"}))
    asker, look_ahead = Asker(), compile_pattern("persistent://t/n/(?!x).*")
    assert await scene.names(asker) == set(NAMES)
    assert await scene.names(asker, properties={"a": "b"}) == {"persistent://t/n/direct"}
    assert await scene.names(asker, pattern=look_ahead) == {"persistent://t/n/direct"}
    assert [dict(request.properties) for request in scene.direct.asked] == [{"a": "b"}, {}]
    await scene.lister.close()


async def test_properties_do_not_matter_unless_it_is_said(scene: Scene) -> None:
    asker = Asker()
    assert await scene.names(asker, properties={"a": "b"}) == set(NAMES)
    assert scene.has_now(asker, properties={"c": "d"})
    assert "properties" not in scene.lister.depends_on


async def test_what_is_followed_is_compared_in_time(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    leave, again = (scene.lister.follow(NAMESPACE, Mode.PERSISTENT, Asker()) for _ in range(2))
    await eventually(
        lambda: scene.lister.snapshots.age(ViewOfNamespace(NAMESPACE, None), Mode.PERSISTENT) is not None
    )
    scene.store.names[Mode.PERSISTENT] = NAMES[1:]
    time_passes(monkeypatch, 61)
    await eventually(lambda: scene.changed == [NAMESPACE])
    leave()
    leave()
    again()
    time_passes(monkeypatch, 61)
    await asyncio.sleep(0)
    assert len(scene.store.asked) == 2


async def test_notes(scene: Scene) -> None:
    request = ListingRequest(NAMESPACE, Mode.ALL, asker=Asker("one"))
    assert scene.lister.notes(request).snapshot == {
        "age_s": None,
        "of": "principal",
        "kept": "compared",
    }
    await scene.lister.list_topics(request)
    notes = scene.lister.notes(request)
    assert notes.snapshot is not None
    assert notes.snapshot["age_s"] is not None
    assert notes.warnings == ()
    gone = Asker("gone")
    assert scene.lister.notes(ListingRequest(NAMESPACE, asker=gone)).snapshot is None
    assert not scene.has_now(gone)
    scene.lister.follow(NAMESPACE, Mode.PERSISTENT, gone)()
    partial = Scene(is_partial=True)
    assert partial.lister.notes(request).warnings == (ONE_BROKER,)
    assert partial.lister.notes(ListingRequest(NAMESPACE)).warnings == ()
    assert len(await partial.names(Asker(), Mode.ALL)) == len(NAMES) + len(OTHERS)
    await partial.lister.close()
