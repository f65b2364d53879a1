from __future__ import annotations

from broker_core.metric_labels import CALL_OUTCOMES, LISTINGS, from_zero


def test_what_was_not_counted_is_zero() -> None:
    assert from_zero([("a",), ("b",)], {("b",): 3, ("c",): 1}) == {("a",): 0, ("b",): 3, ("c",): 1}


def test_errors_have_no_plan() -> None:
    assert [plan for outcome, plan in LISTINGS if outcome == "error"] == ["unknown"]
    assert len(LISTINGS) == len(set(LISTINGS)) == 15


def test_every_hook_may_fail() -> None:
    assert all("error" in outcomes for outcomes in CALL_OUTCOMES.values())
