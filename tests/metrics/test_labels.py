from __future__ import annotations

from broker_core.access.asker import ACTIONS
from broker_core.metrics.labels import DENIALS, LISTINGS


def test_every_action_may_be_denied() -> None:
    assert [action for action, by in DENIALS if by == "rules"] == [*ACTIONS, "monitor"]


def test_errors_have_no_plan() -> None:
    assert [plan for outcome, plan in LISTINGS if outcome == "error"] == ["unknown"]
    assert len(LISTINGS) == len(set(LISTINGS)) == 15
