"""A circuit breaker: a hook that fails repeatedly is not called for a while, then tried once."""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["COOLDOWN", "THRESHOLD", "BreakerState", "CallPermission", "CircuitBreaker"]

#: Failures in a row that open the breaker.
THRESHOLD: Final = 5
#: Seconds after which an open breaker lets one call through.
COOLDOWN: Final = 5.0


class BreakerState(enum.IntEnum):
    """States of a breaker, with the numbers of the metric ``listing_plugin_breaker_state``."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


class CallPermission(enum.Enum):
    """Whether a call may be made. The outcome of a trial decides about the breaker."""

    NORMAL = enum.auto()
    TRIAL = enum.auto()
    REFUSED = enum.auto()


class CircuitBreaker:
    """Counts failures in a row.

    Every admitted call ends in one of :meth:`succeeded`, :meth:`failed` and :meth:`undecided`.
    Times are seconds of any one monotonic clock, given by the caller.
    """

    __slots__ = ("_opened_at", "_threshold", "_wait", "failures", "opened", "state")

    def __init__(self, threshold: int = THRESHOLD, cooldown: float = COOLDOWN) -> None:
        self._threshold = threshold
        self._wait = cooldown
        self._opened_at = 0.0
        self.state = BreakerState.CLOSED
        self.failures = 0  # in a row
        self.opened = 0  # how often

    def admit(self, now: float) -> CallPermission:
        if self.state is BreakerState.CLOSED:
            return CallPermission.NORMAL
        if self.state is BreakerState.OPEN and now >= self._opened_at + self._wait:
            self.state = BreakerState.HALF_OPEN
            return CallPermission.TRIAL
        return CallPermission.REFUSED

    def succeeded(self, admission: CallPermission) -> None:
        # A late success of a call from before the breaker opened proves nothing.
        if self._is_the_trial(admission) or self.state is BreakerState.CLOSED:
            self.recovered()

    def recovered(self) -> None:
        """Close the breaker and reset the count of failures: the plugin reported that the cause is gone."""
        self.state = BreakerState.CLOSED
        self.failures = 0

    def failed(self, admission: CallPermission, now: float) -> None:
        trial = self._is_the_trial(admission)
        if trial or self.state is BreakerState.CLOSED:
            self.failures += 1
            if trial or self.failures >= self._threshold:
                self.state = BreakerState.OPEN
                self._opened_at = now
                self.opened += 1

    def undecided(self, admission: CallPermission) -> None:
        """Note that a call ended for a reason outside the plugin; if it was the trial, the next call is one."""
        if self._is_the_trial(admission):
            self.state = BreakerState.OPEN

    def _is_the_trial(self, admission: CallPermission) -> bool:
        # A trial from before a recovery counts as any other call.
        return admission is CallPermission.TRIAL and self.state is BreakerState.HALF_OPEN
