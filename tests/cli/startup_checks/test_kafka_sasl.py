from __future__ import annotations

from typing import Any

import pytest

from broker_core.cli.startup_checks.kafka_sasl import kafka_sasl_checks
from broker_core.settings import Settings

ALL = ["PLAIN", "SCRAM-SHA-256"]
NOBODY = "they have no role, and no rule allows them anything"
BASIC = {"methods": ["basic"], "basic": {"file": "users"}}


@pytest.mark.parametrize(
    ("tables", "found"),
    [
        ({}, []),
        ({"kafka": {}}, []),
        ({"kafka": {"sasl": {"mechanisms": ALL}}}, ["ok PLAIN, SCRAM-SHA-256"]),
        (
            {"kafka": {"sasl": {"mechanisms": ["OAUTHBEARER"]}}},
            ["error 'OAUTHBEARER' cannot be used: it needs 'token' in authentication.methods"],
        ),
        (
            {"kafka": {"sasl": {"mechanisms": ["OAUTHBEARER"]}}, "plugins": {"enabled": ["mine"]}},
            ["warning 'OAUTHBEARER' cannot be used: it needs 'token' in authentication.methods"],
        ),
        (
            {"kafka": {}, "authentication": BASIC},
            [f"warning Kafka clients are asked for no credentials: {NOBODY}"],
        ),
    ],
)
def test_what_is_said_of_mechanisms(tables: dict[str, Any], found: list[str]) -> None:
    checks = list(kafka_sasl_checks(Settings.model_validate(tables)))
    assert [f"{check.level} {check.text}" for check in checks] == found
