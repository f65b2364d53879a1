"""Failures name a reason of the list, and carry no credentials to clients."""

from __future__ import annotations

from broker_core.access.authentication.failures import REASONS, AuthenticationFailed, InvalidRoles
from broker_core.metrics.labels import AUTHENTICATIONS


def test_a_failure_has_a_reason_for_metrics_and_a_detail_for_the_log() -> None:
    failure = AuthenticationFailed("expired", "exp is 5 s ago")
    assert (failure.reason, failure.detail, str(failure)) == (
        "expired",
        "exp is 5 s ago",
        "expired: exp is 5 s ago",
    )
    assert str(AuthenticationFailed("expired")) == "expired"
    assert failure.reason in REASONS
    assert len(set(REASONS)) == len(REASONS)


def test_invalid_roles_have_the_text_for_the_client() -> None:
    assert InvalidRoles("Invalid roles.", "proxy").message == "Invalid roles."


def test_metrics_know_all_reasons() -> None:
    outcomes = {outcome for _, outcome in AUTHENTICATIONS}
    assert outcomes - set(REASONS) == {"ok", "anonymous", "renewed", "invalid_roles", "other_principal"}
    assert set(REASONS) <= outcomes
