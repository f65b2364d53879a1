"""A clock that tests set, so that no result depends on the speed of the machine."""

from __future__ import annotations

import asyncio
import time

import pytest

from broker_core.plugins.call.circuit_breaker import THRESHOLD, CircuitBreaker

__all__ = ["AGES", "SetClock", "WallClock", "breakers_stay_open", "time_passes", "time_stands", "wall_clock"]

#: Seconds that no test takes.
AGES = 3600.0


def time_passes(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Put the clock of the running event loop on by so much; the timers that are due by then go off."""
    loop = asyncio.get_running_loop()
    before = loop.time
    monkeypatch.setattr(loop, "time", lambda: before() + seconds)


def time_stands(monkeypatch: pytest.MonkeyPatch) -> float:
    """Stop the clock of the running event loop, at the time that is returned; no timer goes off any more."""
    loop = asyncio.get_running_loop()
    now = loop.time()
    monkeypatch.setattr(loop, "time", lambda: now)
    return now


class SetClock:
    """A clock that says ``now``."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class WallClock:
    """The time of day, ``ahead`` seconds after that of the machine."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


def wall_clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    """The clock by which tokens end, at servers that are made from now on."""
    from broker_core.access.authentication.tokens.token_verifier import TokenVerifier
    from broker_core.service.live_sessions import Expiries

    clock = WallClock()
    monkeypatch.setattr(TokenVerifier.__init__, "__kwdefaults__", {"clock": clock})
    monkeypatch.setattr(Expiries.__init__, "__defaults__", (clock,))
    return clock


def breakers_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breakers that are made from now on try nobody again, however long the test takes."""
    monkeypatch.setattr(CircuitBreaker.__init__, "__defaults__", (THRESHOLD, AGES))
