"""Quotas: buckets, queues and refusals, on a clock that the tests move."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.access.asker import OPERATOR, Asker
from broker_core.errors import Cause, QuotaExceeded
from broker_core.metrics.metrics import Metrics
from broker_core.names import MAX_NAMESPACE
from broker_core.service import Quotas, quotas
from broker_core.settings import QuotaSettings, Settings
from tests.support.clock import SetClock


def quota(name: str = "q", **values: Any) -> QuotaSettings:
    return QuotaSettings.model_validate({"name": name, **values})


def of(*settings: QuotaSettings) -> tuple[Quotas, SetClock, Metrics]:
    time, metrics = SetClock(), Metrics()
    return Quotas(settings, metrics, time), time, metrics


ALICE = Asker("alice", remote_address="192.0.2.1:1")
BOB = Asker("bob", remote_address="192.0.2.2:1")


def waits(found: Quotas, asker: Asker = ALICE, namespace: str = "a/b") -> float:
    turn = found.turn(asker, namespace)
    assert turn is not None
    return turn.wait


def test_without_a_quota_there_is_nothing_to_ask() -> None:
    found, _, _ = of()
    assert not found.on
    assert found.turn(ALICE) is None


def test_a_burst_passes_then_each_waits_for_its_token() -> None:
    found, time, _ = of(quota(requests=10, burst="1s"))
    assert [waits(found) for _ in range(10)] == [0] * 10
    assert waits(found) == pytest.approx(0.1)
    assert waits(found) == pytest.approx(0.2)  # behind the one before
    assert waits(found, BOB) == 0  # whose bucket is another
    time.now += 0.3
    assert waits(found) == 0
    time.now += 1000
    assert [waits(found) for _ in range(11)][-1] == pytest.approx(0.1)  # no more than a burst is kept


def test_what_would_wait_too_long_is_refused_and_takes_nothing() -> None:
    found, time, metrics = of(quota(requests=1, burst="1s", max_wait="2s"))
    assert [waits(found) for _ in range(3)] == [0, 1, 2]
    for _ in range(100):
        with pytest.raises(
            QuotaExceeded, match="quota 'q' of this client is used up: ask again in 3 s"
        ) as error:
            found.turn(ALICE, "a/b")
        assert (error.value.cause, error.value.retry_after) == (Cause.QUOTA, 3)
    time.now += 1
    assert waits(found) == pytest.approx(2)
    value = metrics.registry.get_sample_value
    labels = {"quota": "q", "outcome": "refused"}
    assert value("broker_core_quota_requests_total", labels) == 100
    assert value("broker_core_quota_requests_total", labels | {"outcome": "waited"}) == 3


async def test_the_queue_of_a_bucket_is_bounded_and_who_leaves_gives_back() -> None:
    found, _, metrics = of(quota(requests=1, burst="1s", queue=2, max_wait="1h"))
    assert waits(found) == 0
    tasks = []
    for _ in range(2):
        turn = found.turn(ALICE)
        assert turn is not None
        tasks.append(asyncio.create_task(turn.begin()))
        await asyncio.sleep(0)
    assert metrics.registry.get_sample_value("broker_core_quota_waiting", {"quota": "q"}) == 2
    with pytest.raises(QuotaExceeded):
        found.turn(ALICE)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert metrics.registry.get_sample_value("broker_core_quota_waiting", {"quota": "q"}) == 0
    assert waits(found) == pytest.approx(1)  # as if those had never asked


def test_bytes_are_paid_when_the_answer_is_known() -> None:
    found, time, _ = of(quota(bytes=1000, burst="1s"))
    turn = found.turn(ALICE)
    assert turn is not None
    assert turn.wait == 0
    turn.spent(3000)
    assert turn.debt == pytest.approx(2)
    assert waits(found) == pytest.approx(2)
    time.now += 10
    assert waits(found) == 0


def test_of_several_quotas_all_hold() -> None:
    found, _, _ = of(
        quota("each", requests=10, burst="1s"), quota("all", requests=1, burst="1s", per=[], max_wait="1s")
    )
    assert waits(found) == 0
    assert waits(found, BOB) == pytest.approx(1)  # both share one
    with pytest.raises(QuotaExceeded, match="'all'"):
        found.turn(ALICE)


@pytest.mark.parametrize(
    ("values", "asker", "namespace", "matches"),
    [
        ({}, Asker(remote_address="192.0.2.1:1"), "", True),
        ({"roles": ["al*"]}, ALICE, "a/b", True),
        ({"roles": ["al*"]}, BOB, "a/b", False),
        ({"roles": ["al*"]}, Asker(), "a/b", False),
        ({"roles": ["al*"]}, Asker("proxy", "alice"), "a/b", True),  # for whom it asks
        ({"addresses": ["192.0.2.0/24"]}, ALICE, "a/b", True),
        ({"addresses": ["192.0.2.0/31"]}, BOB, "a/b", False),
        ({"addresses": ["192.0.2.0/24"]}, Asker(), "a/b", False),
        ({"addresses": ["192.0.2.1"]}, Asker(remote_address="[::ffff:192.0.2.1]:7"), "a/b", True),
        ({"namespaces": ["a/*"]}, ALICE, "a/b", True),
        ({"namespaces": ["a/*"]}, ALICE, "b/a", False),
        ({"namespaces": ["a/*"]}, ALICE, "", False),
        ({"namespaces": ["a/*"]}, ALICE, "a/".ljust(MAX_NAMESPACE, "b"), True),
        ({"namespaces": ["a/*"]}, ALICE, "a/".ljust(MAX_NAMESPACE + 1, "b"), False),
        ({}, Asker(transport=OPERATOR), "a/b", False),
    ],
)
def test_which_requests_match(values: dict[str, Any], asker: Asker, namespace: str, *, matches: bool) -> None:
    found, _, _ = of(quota(requests=1, **values))
    for _ in range(2):  # the second time as it is known
        assert (found.turn(asker, namespace) is not None) is matches


def test_buckets_are_bounded_and_nobody_gets_more_by_being_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "_MOST_BUCKETS", 10)
    found, time, metrics = of(quota(requests=1, burst="1s", per=["address"]))
    for number in range(30):
        turn = found.turn(Asker(remote_address=f"192.0.2.{number}:1"))
        assert turn is not None
        # Ten have a bucket of their own, the others share one.
        assert turn.wait == pytest.approx(max(0, number - 10)) or number > 15
        if number == 15:
            break
    assert metrics.registry.get_sample_value("broker_core_quota_buckets", {"quota": "q"}) == 10
    time.now += 1000  # all are full: they are forgotten
    assert waits(found, Asker(remote_address="192.0.2.99:1")) == 0
    assert metrics.registry.get_sample_value("broker_core_quota_buckets", {"quota": "q"}) == 1


def test_unchanged_quotas_keep_their_level() -> None:
    kept, changed = quota("kept", requests=1, burst="1s"), quota("changed", requests=1, burst="1s", per=[])
    found, _, _ = of(kept, changed)
    assert waits(found) == 0
    swap = found.prepare(Settings(quotas=(kept,)))
    assert waits(found) == pytest.approx(1)  # nothing is in force yet
    swap()
    assert waits(found) == pytest.approx(2)
    found.prepare(Settings())()
    assert not found.on
