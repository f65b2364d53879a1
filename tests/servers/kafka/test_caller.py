from __future__ import annotations

from broker_core.wire.kafka import API_VERSIONS
from tests.support.kafka_calls import call_of


def test_a_role_is_a_principal_without_user() -> None:
    assert call_of(API_VERSIONS, 0, role="alice").principal == "User:alice"
    assert call_of(API_VERSIONS, 0).principal == "User:ANONYMOUS"
