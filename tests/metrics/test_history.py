from __future__ import annotations

import asyncio
import json

import pytest

from broker_core.memory.permits import Permits
from broker_core.metrics import history
from broker_core.metrics.history import SAMPLES, History
from broker_core.metrics.metrics import Metrics
from tests.support.eventually import eventually


def test_samples_are_of_what_was_counted_since_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("broker_core.metrics.history.time.monotonic", lambda: now[0])
    metrics = Metrics()
    clients = ["a", "b"]
    taken = History.of(metrics, Permits(), clients)
    assert taken.values()["until"] is None
    for _ in range(20):
        metrics.listing("served", "scan", 3, 0.002)
    metrics.listing_refused("denied", 0.002)
    now[0] += 10
    taken.sample()
    clients.pop()
    now[0] += 10
    taken.sample()
    series = taken.values()["series"]
    assert series["listings_per_s"] == [2.1, 0.0]
    assert series["listing_errors_per_s"] == [0.1, 0.0]
    assert series["listing_ms"] == [2.0, None]
    assert series["kafka_per_s"] == [0.0, 0.0]  # there is no listener of Kafka
    assert series["connections"] == [2.0, 1.0]
    assert all(value > 1_000_000 for value in series["rss"])


def test_only_the_last_hour_is_kept_and_small() -> None:
    seen = 0.0

    def read() -> float:
        nonlocal seen
        seen += 1
        return seen

    taken = History(Metrics(), {"seen": read})
    for _ in range(2 * SAMPLES + 5):
        taken.sample()
    values = taken.values()
    assert values["series"]["seen"] == [float(each) for each in range(SAMPLES + 6, 2 * SAMPLES + 6)]
    assert values["until"] > 0
    assert len(json.dumps(values)) < 1_000_000


async def test_a_sample_is_taken_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "INTERVAL", 0.01)
    taken = History(Metrics(), {})
    task = asyncio.create_task(taken.watch())
    await eventually(lambda: len(taken.values()["series"]["cpu"]) > 2)
    task.cancel()
