"""Lag of the event loop: for how long a client waits before anything is done for it."""

from __future__ import annotations

import asyncio
from typing import Final

from broker_core.metrics.metrics import Metrics

__all__ = ["watch_event_loop"]

_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
#: Seconds between two looks.
_INTERVAL: Final = 0.5


async def watch_event_loop(metrics: Metrics) -> None:
    """Declare the metric, and look at the loop twice a second until cancelled."""
    lag = metrics.histogram(
        "event_loop_lag_seconds",
        "Seconds that the event loop was late, looked at twice a second.",
        _BOUNDS,
    ).of()
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _INTERVAL
        await asyncio.sleep(_INTERVAL)
        lag.observe(max(0.0, loop.time() - due))
