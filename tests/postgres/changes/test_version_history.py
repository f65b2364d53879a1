"""Versions that grow, and versions that went back."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.names import NamespaceName
from broker_core_postgres.changes import version_history as history_module
from broker_core_postgres.changes.version_history import VersionHistory

_ONE, _TWO = NamespaceName.parse("public/one"), NamespaceName.parse("public/two")


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_versions_that_grow_are_one_history() -> None:
    told: list[NamespaceName] = []
    history = VersionHistory(told.append)
    for number in (1, 1, 2, 5):
        assert history.record(_ONE, "a", number, read_at=now())
    assert (history.epoch, told) == (0, [])
    assert history.version("a", 5, history.epoch) == "a:5"


async def test_a_version_that_went_back_begins_another_history() -> None:
    told: list[NamespaceName] = []
    history = VersionHistory(told.append)
    assert history.record(_ONE, "a", 5, read_at=now())
    assert history.record(_TWO, "a", 7, read_at=now())
    before = history.version("a", 5, history.epoch)
    assert not history.record(_ONE, "a", 4, read_at=now())
    assert sorted(map(str, told)) == ["public/one", "public/two"]
    assert (history.epoch, history.breaks) == (1, 1)
    assert history.record(_ONE, "a", 4, read_at=now())
    assert history.record(_ONE, "a", 5, read_at=now())
    assert history.version("a", 5, history.epoch) != before


async def test_a_slow_listing_of_an_older_version_is_no_past() -> None:
    history = VersionHistory()
    asked = now()
    assert history.record(_ONE, "a", 5, read_at=now())
    assert history.record(_ONE, "a", 4, read_at=asked)  # the reading began before version 5 was known
    assert history.record(_ONE, "a", 5, read_at=now())
    assert history.epoch == 0


async def test_a_replica_may_be_behind_by_what_is_allowed() -> None:
    history = VersionHistory(max_lag=2)
    assert history.record(_ONE, "a", 5, read_at=now())
    assert history.record(_ONE, "a", 3, read_at=now())
    assert not history.record(_ONE, "a", 2, read_at=now())


async def test_another_catalogue_names_its_own_versions() -> None:
    told: list[NamespaceName] = []
    history = VersionHistory(told.append)
    assert history.record(_ONE, "a", 5, read_at=now())
    assert history.record(_ONE, "b", 1, read_at=now())
    assert (told, history.epoch) == ([_ONE], 0)
    assert history.record(_ONE, "b", 2, read_at=now())


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "_REMEMBERED", 3)
    history = VersionHistory()
    for number in range(10):
        assert history.record(NamespaceName.parse(f"public/n{number}"), "a", 5, read_at=now())
    assert len(history._seen) == 3
