from __future__ import annotations

import pytest

from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.sync.retry import Retry, TransientFailure


class Calls:
    """Fails a number of times, then succeeds."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.count = 0

    async def __call__(self) -> str:
        self.count += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"


async def test_what_passes_is_tried_again() -> None:
    calls = Calls(TransientFailure("one"), TransientFailure("two"))
    assert await Retry(tries=3, first=0.001).run(calls) == "done"
    assert calls.count == 3


async def test_the_last_failure_is_told_and_no_other_is_tried_again() -> None:
    calls = Calls(TransientFailure("one"), TransientFailure("two"), TransientFailure("three"))
    with pytest.raises(TransientFailure, match="two"):
        await Retry(tries=2, first=0.001).run(calls)
    refused = Calls(FillingFailed("no"))
    with pytest.raises(FillingFailed, match="no"):
        await Retry(tries=5, first=0.001).run(refused)
    assert refused.count == 1


def test_waits_grow_up_to_a_bound_and_are_spread() -> None:
    retry = Retry(first=1.0, most=10.0)
    for number, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (60, 10.0)):
        waits = {retry.wait(number) for _ in range(50)}
        assert all(longest / 2 <= wait <= longest for wait in waits)
        assert len(waits) > 1


def test_the_other_side_may_ask_for_a_longer_wait_within_the_bound() -> None:
    retry = Retry(first=0.1, most=10.0)
    assert retry.wait(1, 5.0) == 5.0
    assert retry.wait(1, 3600.0) == 10.0
    assert retry.wait(1, 0.0) > 0
