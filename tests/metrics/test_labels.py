from __future__ import annotations

from broker_core.metrics.labels import LISTINGS


def test_errors_have_no_plan() -> None:
    assert [plan for outcome, plan in LISTINGS if outcome == "error"] == ["unknown"]
    assert len(LISTINGS) == len(set(LISTINGS)) == 15
