"""The lag of the event loop is looked at, and a blocked loop shows."""

from __future__ import annotations

import asyncio
import time

import pytest

from broker_core.metrics import metrics as module
from broker_core.metrics.metrics import Metrics, watch_event_loop
from tests.support.eventually import eventually


async def test_a_blocked_loop_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_INTERVAL", 0.01)
    metrics = Metrics()

    def seen(name: str) -> float:
        return metrics.registry.get_sample_value(f"broker_core_event_loop_lag_seconds_{name}") or 0.0

    task = asyncio.create_task(watch_event_loop(metrics))
    try:
        await eventually(lambda: seen("count") >= 2)
        before = seen("sum")
        time.sleep(0.2)  # noqa: ASYNC251 - what must show
        await eventually(lambda: seen("sum") - before >= 0.15)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
