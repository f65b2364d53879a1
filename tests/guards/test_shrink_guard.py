"""The shrink guard: what is held, for how long, what passes, and what survives a restart."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from broker_core.change_log import CatalogVersion
from broker_core.errors import Cause, ListingFailed
from broker_core.guards import ShrinkGuard
from broker_core.names import NamespaceName
from broker_core.settings import ShrinkGuardNamespace, ShrinkGuardSettings
from tests.support.clock import WallClock

FIRST_LINE = "broker-core shrink guard 2"
ONE, TWO = NamespaceName("acme", "one"), NamespaceName("acme", "two")


def guard(clock: WallClock | None = None, **settings: object) -> ShrinkGuard:
    return ShrinkGuard(ShrinkGuardSettings.model_validate(settings), clock=clock or WallClock())


def held(guard: ShrinkGuard, count: int, *, namespace: NamespaceName = ONE, question: str = "q") -> bool:
    failure: ListingFailed | None = None
    try:
        guard.check(namespace, question, count)
    except ListingFailed as failed:
        failure = failed
    if failure is None:
        return False
    assert failure.cause is Cause.UPSTREAM
    assert failure.reason == "shrink_guard"
    assert f"shrink-guard accept {namespace}" in failure.message
    return True


def test_a_loss_of_more_than_the_share_is_held_until_it_is_over() -> None:
    clock = WallClock()
    own = guard(clock, hold="1h")
    assert not held(own, 100)
    assert not held(own, 50), "half of them"
    assert not held(own, 100)
    for _ in range(60):
        assert held(own, 49)
        clock.ahead += 59
    assert not held(own, 100), "it was a mistake"
    assert held(own, 10)
    assert held(own, 20)
    (shown,) = own.held()
    assert (shown.namespace, shown.question, shown.before, shown.now, shown.missing) == (
        ONE,
        "q",
        100,
        20,
        80,
    )
    assert shown.until - shown.since == 3600
    clock.ahead += 3600
    assert not held(own, 10)
    assert not held(own, 5), "it is the new baseline, of half of it"
    assert own.held() == []
    assert own.counts == {"held": 2, "accepted": 0, "passed": 1}


def test_small_listings_questions_and_namespaces_are_apart() -> None:
    own = guard(
        min_topics=10,
        namespaces=[
            ShrinkGuardNamespace(name="acme/t*", max_ratio=0.9),
            ShrinkGuardNamespace(name="off/*", enabled=False),
        ],
    )
    for count in (9, 0, 100):
        assert not held(own, count)
    assert not held(own, 1, question="another")
    assert held(own, 1)
    for count in (100, 10):
        assert not held(own, count, namespace=TWO)
    assert held(own, 0, namespace=TWO)
    off = NamespaceName("off", "x")
    for count in (100, 0):
        assert not held(own, count, namespace=off)
    assert not held(guard(enabled=False), 0)


def test_an_operator_accepts_a_namespace() -> None:
    clock = WallClock()
    own = guard(clock)
    for namespace in (ONE, TWO):
        for question in ("p", "q"):
            assert not held(own, 100, namespace=namespace, question=question)
    clock.ahead += 1
    assert held(own, 10, question="p")
    assert held(own, 10, namespace=TWO)
    assert own.accept(ONE) == 1
    clock.ahead += 1
    assert not held(own, 10, question="p")
    assert not held(own, 10, question="q"), "whatever was remembered of it before"
    assert held(own, 10, namespace=TWO), "of this namespace alone"
    assert held(own, 1, question="p"), "once"
    assert own.counts["accepted"] == 1


def test_what_is_told_one_by_one_is_meant() -> None:
    own = guard()
    assert not held(own, 100)
    for count in range(99, 19, -1):
        own.intended(ONE, "q", count)
    assert not held(own, 20)
    assert held(own, 5)


async def test_it_survives_a_restart(tmp_path: Path) -> None:
    clock, file = WallClock(), tmp_path / "guard"
    own = guard(clock, file=str(file))
    await own.start()
    assert not held(own, 100)
    assert not held(own, 100, namespace=TWO)
    assert held(own, 10)
    clock.ahead += 1
    own.accept(TWO)
    clock.ahead += 1
    await own.stop()
    assert os.listdir(tmp_path) == ["guard"]  # noqa: PTH208  # not of an async function
    again = guard(clock, file=str(file))
    await again.start()
    assert held(again, 10)
    assert not held(again, 10, namespace=TWO)
    clock.ahead += 3600
    assert not held(again, 10), "it was held since before the restart"
    await again.stop()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "broker-core shrink guard 1\n",
        "broker-core shrink guard 2\nbad\n",
        "broker-core shrink guard 2\na b c d\n",
        "broker-core shrink guard 2\naccepted\n",
        "broker-core shrink guard 2\naccepted acme/shop\n",
    ],
)
async def test_a_damaged_file_is_replaced(tmp_path: Path, text: str) -> None:
    file = tmp_path / "guard"
    file.write_text(text, encoding="utf-8")
    own = guard(file=str(file))
    await own.start()
    assert not held(own, 100)
    await own.stop()
    again = guard(file=str(file))
    await again.start()
    assert held(again, 10)
    await again.stop()


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from broker_core.guards import shrink_guard

    monkeypatch.setattr(shrink_guard, "_MOST", 10)
    own = guard()
    for number in range(100):
        assert not held(own, 100, question=str(number))
    assert len(own._remembered) == 10
    assert not held(own, 1, question="0")
    assert held(own, 1, question="99")


def test_an_acceptance_passes_one_loss_of_each_question_and_none_much_later() -> None:
    clock = WallClock()
    own = guard(clock, hold="1h")
    for question in ("a", "b"):
        assert not held(own, 100, question=question)
    clock.ahead += 1
    own.accept(ONE)
    assert not held(own, 100, question="a")
    assert held(own, 5, question="a"), "the listing after the acceptance was whole: the acceptance is used up"
    clock.ahead += 3601
    assert held(own, 5, question="b"), "nobody meant a loss an hour later"


def test_namespaces_are_matched_as_by_rules_and_the_first_table_counts() -> None:
    own = guard(
        namespaces=[
            {"name": "acme/o*", "max_ratio": 0.9, "hold": "2h"},
            {"name": "acme/one", "enabled": False},
            {"name": "a[bc]/x", "enabled": False},
            {"name": "*", "min_topics": 50},
        ]
    )
    one, two = own.limits_of(ONE), own.limits_of(TWO)
    assert (one.enabled, one.max_ratio, one.min_topics, one.hold) == (True, 0.9, 10, 7200.0)
    assert (two.enabled, two.max_ratio, two.min_topics, two.hold) == (True, 0.5, 50, 3600.0)
    assert own.limits_of(NamespaceName("ab", "x")).enabled, "a bracket is itself"


async def test_deletions_of_a_change_log_are_told(tmp_path: Path) -> None:
    file = str(tmp_path / "guard")
    before = (CatalogVersion("log", 3), CatalogVersion("other", 9))
    own = guard(file=file)
    await own.start()
    own.check(ONE, "q", 100, versions=before)
    assert own.versions_before(ONE, "q", 60) == (), "nothing is to be decided"
    assert own.versions_before(ONE, "other", 1) == ()
    assert own.versions_before(ONE, "q", 40) == before
    await own.stop()
    own = guard(file=file)
    await own.start()
    assert own.versions_before(ONE, "q", 40) == before, "over a restart"
    own.check(ONE, "q", 40, deletions=60, versions=(CatalogVersion("log", 63),))
    with pytest.raises(ListingFailed, match="36 of 40"):
        own.check(ONE, "q", 4, deletions=5)
    await own.stop()


async def test_a_file_of_others_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "guard"
    file.write_bytes(b"\xff of others\n")
    own = guard(file=str(file))
    with capture_logs() as logs:
        await own.start()
    assert not held(own, 100)
    await own.stop()
    assert file.read_bytes() == b"\xff of others\n"
    assert [line["log_level"] for line in logs] == ["error"]
    assert "is another file" in logs[0]["reason"]


async def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "guard"
    os.mkfifo(file)
    own = guard(file=str(file))
    with capture_logs() as logs:
        await own.start()
    await own.stop()
    assert [(line["event"], line["reason"]) for line in logs] == [
        ("shrink_guard.file cannot be written", f"{file} is not a file")
    ]


async def test_a_file_that_cannot_be_written_is_logged_at_the_start(tmp_path: Path) -> None:
    own = guard(file=str(tmp_path / "missing" / "guard"))
    with capture_logs() as logs:
        await own.start()
    await own.stop()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("shrink_guard.file cannot be written", "error")
    ]
