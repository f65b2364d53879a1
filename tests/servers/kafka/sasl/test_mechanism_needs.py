from __future__ import annotations

import pytest

from broker_core.servers.kafka.sasl.mechanisms import MechanismUnusable, check_mechanisms
from broker_core.settings import KafkaMechanism
from tests.support.kafka_logins import ALL


def test_with_a_catalogue_and_tokens_all_can_be_used() -> None:
    check_mechanisms(ALL, lambda method: method == "token", has_users=True)


def test_before_a_cluster_passwords_and_tokens_can_be_used() -> None:
    check_mechanisms(("PLAIN", "OAUTHBEARER"), lambda _: True, has_users=False)


@pytest.mark.parametrize(
    ("mechanism", "missing"),
    [
        ("OAUTHBEARER", "'token' in authentication.methods"),
        ("PLAIN", "'basic' in authentication.methods"),
        ("SCRAM-SHA-256", "users are in the embedded catalogue"),
        ("SCRAM-SHA-512", "users are in the embedded catalogue"),
    ],
)
def test_what_is_missing_is_named(mechanism: KafkaMechanism, missing: str) -> None:
    with pytest.raises(MechanismUnusable, match=missing) as unusable:
        check_mechanisms((mechanism,), lambda _: False, has_users=False)
    assert str(unusable.value).startswith(f"kafka.sasl.mechanisms: '{mechanism}'")
