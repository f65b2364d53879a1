"""Counts, and what is known of the last hour."""

from __future__ import annotations

from broker_core_spark.serving.counters import HOUR, AnswerCounts
from broker_core_spark.serving.pass_to_next_lister import PASS_REASONS


def test_every_reason_is_there_from_the_start() -> None:
    assert AnswerCounts().passed == dict.fromkeys(PASS_REASONS, 0)


def test_only_the_last_hour_is_told() -> None:
    now = 1e6
    tally = AnswerCounts(lambda: now)
    assert tally.last_hour() == (0, 0)
    tally.answered("served")
    tally.answered("unchanged")
    tally.passed_on("not_registered")
    assert tally.last_hour() == (2, 1)
    now += HOUR / 2
    tally.passed_on("gap")
    assert tally.last_hour() == (2, 2)
    now += HOUR / 2 + 60
    assert tally.last_hour() == (0, 1)
    now += 10 * HOUR
    assert tally.last_hour() == (0, 0)
    assert tally.answers == {"served": 1, "unchanged": 1, "stale": 0}
    assert (tally.passed["not_registered"], tally.passed["gap"]) == (1, 1)
