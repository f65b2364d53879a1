"""The change log of a cluster: every change since a version, or a gap."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker_core.access.asker import Asker
from broker_core.change_log import CatalogVersion, ChangeLog, Changes, Gap, ListedNames, Operation
from broker_core.listing.listing_hash import topics_hash
from broker_core.memory.permits import Permits
from broker_core.names import Mode
from broker_core.upstream.snapshots import (
    LiveSnapshots,
    SnapshotLister,
    SnapshotLog,
    TopicUpdate,
    snapshot_log,
)
from broker_core.upstream.snapshots.snapshot_log import ViewOfNamespace
from tests.support.clock import time_passes
from tests.support.memory_lister import MemoryLister
from tests.support.memory_store import NAMESPACE, OTHERS, MemoryStore

PLAIN, PARTED = "persistent://t/n/plain", "persistent://t/n/parted"


class Scene:
    def __init__(self, *, has_verdicts: bool = True) -> None:
        self.store = MemoryStore(has_verdicts=has_verdicts)
        self.store.names[Mode.PERSISTENT] = [PLAIN, f"{PARTED}-partition-0"]
        self.permits = Permits()
        self.live = LiveSnapshots(self.store, self.permits, lambda _: None)
        self.lister = SnapshotLister(self.store, self.live, MemoryLister([]), max_age=60.0)
        self.log = self.lister.log_of(Asker("one"))

    async def moves(self, *, new: list[str] = [], gone: list[str] = []) -> None:  # noqa: B006
        """A watch tells of topics that came and went."""
        names = self.store.names[Mode.PERSISTENT]
        self.store.names[Mode.PERSISTENT] = [name for name in names if name not in gone] + new
        told = topics_hash(self.store.names[Mode.PERSISTENT])
        view = self.store.view_of(Asker("one"))
        assert await self.live.move(ViewOfNamespace(NAMESPACE, view), [TopicUpdate(new, gone, told)])

    async def since(self, version: CatalogVersion) -> Changes:
        found = await self.log.changes(NAMESPACE, version)
        assert isinstance(found, Changes)
        return found

    async def gap(self, version: CatalogVersion, log: SnapshotLog | None = None) -> str:
        found = await (log or self.log).changes(NAMESPACE, version)
        assert isinstance(found, Gap)
        assert found.version == await (log or self.log).version(NAMESPACE)
        return found.reason


@asynccontextmanager
async def opened(*, has_verdicts: bool = True) -> AsyncIterator[Scene]:
    scene = Scene(has_verdicts=has_verdicts)
    try:
        yield scene
    finally:
        await scene.lister.close()


async def test_a_change_is_of_a_topic_with_all_its_names() -> None:
    async with opened() as scene:
        assert isinstance(scene.log, ChangeLog)
        assert scene.log.version_now(NAMESPACE) is None, "nothing is in memory"
        first = await scene.log.version(NAMESPACE)
        assert scene.log.version_now(NAMESPACE) == first
        assert (await scene.since(first)).changes == ()
        await scene.moves(new=[f"{PARTED}-partition-{index}" for index in (1, 2)])
        second = await scene.log.version(NAMESPACE)
        await scene.moves(new=["persistent://t/n/new"], gone=[PLAIN])
        told = await scene.since(first)
        assert [
            (each.operation, each.name.local, str(each.listed_before), str(each.listed_after))
            for each in told
        ] == [
            (Operation.UPDATE, "parted", "0", "0-2"),
            (Operation.CREATE, "new", "", "*"),
            (Operation.DELETE, "plain", "*", ""),
        ]
        assert list(told.changes[0].added) == [f"{PARTED}-partition-1", f"{PARTED}-partition-2"]
        assert [each.version for each in await scene.since(second)] == [told.version.number] * 2
        assert first.number < second.number < told.version.number


async def test_a_listing_tells_what_changed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as scene:
        first = await scene.log.version(NAMESPACE)
        time_passes(monkeypatch, 61)
        scene.store.names[Mode.NON_PERSISTENT] = OTHERS[:1]
        scene.store.names[Mode.PERSISTENT] += [f"persistent://t/n/x{index}" for index in range(2000)]
        told = await scene.since(first)
        assert len(told) == 2002, "more than a snapshot is moved by"
        assert sum(each.operation is Operation.DELETE for each in told) == 2


async def test_random_changes_lead_to_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(28)
    async with opened() as scene:
        version = await scene.log.version(NAMESPACE)
        has = {*scene.store.names[Mode.PERSISTENT], *OTHERS}
        pool = [
            *(f"{PARTED}-partition-{index}" for index in range(5)),
            *(f"persistent://t/n/é{i}" for i in range(40)),
        ]
        for _ in range(80):
            there = scene.store.names[Mode.PERSISTENT]
            gone = dice.sample(there, min(len(there), dice.randrange(3)))
            free = sorted(set(pool) - set(there))
            new = dice.sample(free, min(len(free), dice.randrange(1, 4)))
            if dice.random() < 0.7:
                await scene.moves(new=new, gone=gone)
            else:
                scene.store.names[Mode.PERSISTENT] = [name for name in there if name not in gone] + new
                time_passes(monkeypatch, 61)
                await scene.log.version(NAMESPACE)
            if dice.random() < 0.3:
                told = await scene.since(version)
                for each in told:
                    assert has.issuperset(each.removed)
                    assert has.isdisjoint(each.added)
                    has = has.difference(each.removed).union(each.added)
                version = told.version
                assert has == {*scene.store.names[Mode.PERSISTENT], *OTHERS}


async def test_what_is_not_known_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened() as scene:
        first = await scene.log.version(NAMESPACE)
        assert "before the start" in await scene.gap(CatalogVersion("another", first.number))
        for number in (0, first.number + 1):
            assert "not known" in await scene.gap(CatalogVersion(first.catalog_id, number))
        monkeypatch.setattr(snapshot_log, "MOST_STEP", 5)
        await scene.moves(new=[f"persistent://t/n/x{index}" for index in range(6)])
        assert "not known" in await scene.gap(first)
        second = await scene.log.version(NAMESPACE)
        await scene.moves(gone=["persistent://t/n/x1"])
        assert len(await scene.since(second)) == 1
        scene.permits.snapshots.resize(1, timeout=0.01)
        scene.live.fit()
        assert len(scene.live) == 0
        scene.permits.snapshots.resize(100_000_000, timeout=0.01)
        assert "not known" in await scene.gap(second), "what changed while nothing was in memory"


async def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_log, "_MOST_NAMES", 10)
    async with opened() as scene:
        versions = [await scene.log.version(NAMESPACE)]
        for index in range(15):
            await scene.moves(new=[f"persistent://t/n/x{index}"])
            versions.append(await scene.log.version(NAMESPACE))
        assert len(await scene.since(versions[5])) == 10
        assert "not known" in await scene.gap(versions[4])
        assert ListedNames.of(-1) in [each.listed_after for each in await scene.since(versions[14])]


async def test_versions_of_another_principal_or_server_say_nothing() -> None:
    async with opened(has_verdicts=False) as scene, opened(has_verdicts=False) as other:
        assert scene.lister.log is None
        version = await scene.log.version(NAMESPACE)
        for log in (scene.lister.log_of(Asker("two")), other.log):
            assert await log.catalog_id() != version.catalog_id
            assert "another server or client" in await scene.gap(version, log)
        assert (await scene.lister.log_of(Asker("one")).version(NAMESPACE)) == version
