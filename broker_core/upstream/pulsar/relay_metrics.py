"""The metrics of relayed lookups: by command and outcome, their time, redirects, and how many shared one question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker_core.metrics import Metrics
from broker_core.wire.pulsar import LOOKUP_COMMANDS, LookupCommand, commands

__all__ = ["OUTCOMES", "RelayMetrics"]

#: The outcomes of relayed lookups. docs/reference/metrics.md#outcomes-of-a-relayed-lookup
OUTCOMES: Final = ("answered", "denied", "refused", "unreachable", "timeout", "bad_answer", "limit", "gone")

_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)


class RelayMetrics:
    """Counts lookups; ``in_flight`` gives the number that wait for the brokers."""

    def __init__(self, metrics: Metrics, in_flight: Callable[[], int]) -> None:
        names = {row.request: commands.command_name(row.request).lower() for row in LOOKUP_COMMANDS.values()}
        self._names = names
        self._denied = metrics.denied
        self._lookups = metrics.counter(
            "relayed_lookups",
            "Lookups of clients for the brokers, by command and outcome.",
            "command",
            "outcome",
            known=[(name, outcome) for name in names.values() for outcome in OUTCOMES],
        )
        self._shared = metrics.counter(
            "relayed_lookups_shared",
            "Lookups of clients that an equal one was asked for.",
            "command",
            known=[(name,) for name in names.values()],
        )
        seconds = metrics.histogram(
            "relayed_lookup_seconds",
            "Seconds that clients waited for the brokers' answers to lookups.",
            _BOUNDS,
            "command",
        )
        self._seconds = {kind: seconds.of(name) for kind, name in names.items()}
        #: Called for each redirect that is followed.
        self.redirected: Callable[[], None] = metrics.counter(
            "relayed_lookup_redirects", "Redirects of the brokers that were followed."
        )
        metrics.gauge("relayed_lookups_in_flight", "Lookups of clients that wait for the brokers.", in_flight)

    def refused(self, row: LookupCommand) -> None:
        """Count a lookup for which there was no room."""
        self._lookups(self._names[row.request], "limit")

    def ended(self, row: LookupCommand, outcome: str, seconds: float) -> None:
        """Count a lookup that had its place."""
        self._lookups(self._names[row.request], outcome)
        self._seconds[row.request].observe(seconds)
        if outcome == "denied":
            self._denied(row.action, "brokers")

    def count_question(self, row: LookupCommand, askers: int) -> None:
        """Count the askers of one lookup."""
        if askers > 1:
            self._shared.add(askers - 1, self._names[row.request])
