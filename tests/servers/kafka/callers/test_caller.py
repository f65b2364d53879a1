from __future__ import annotations

from broker_core.memory.permit_budget import PermitBudget
from broker_core.wire.kafka import API_VERSIONS
from tests.support.kafka_calls import call_of


def test_a_role_is_a_principal_without_user() -> None:
    assert call_of(API_VERSIONS, 0, role="alice").principal == "User:alice"
    assert call_of(API_VERSIONS, 0).principal == "User:ANONYMOUS"


def test_what_an_answer_held_is_given_back_once() -> None:
    budget = PermitBudget(10)
    call = call_of(API_VERSIONS, 0)
    permit = budget.try_acquire(4)
    assert permit is not None
    call.held.append(permit)
    call.pinned.append(object())
    call.release()
    call.release()
    assert (budget.acquired, call.pinned) == (0, [])
