from __future__ import annotations

import pytest

from broker_core.kafka.configs import InvalidConfig
from broker_core.kafka.configs.config_operations import (
    ConfigChange,
    ConfigOperation,
    altered,
)

POLICY = "cleanup.policy"
REPLICAS = "leader.replication.throttled.replicas"
_APPEND, _SUBTRACT = ConfigOperation.APPEND, ConfigOperation.SUBTRACT


# Recorded from a broker of 4.3.1: value before (None: not set), operation, operand, value after.
@pytest.mark.parametrize(
    ("name", "before", "operation", "operand", "after"),
    [
        (POLICY, None, _APPEND, "compact", "delete,compact"),
        (POLICY, "delete,compact", _APPEND, "compact", "delete,compact"),
        (POLICY, "delete,compact", _APPEND, "compact, delete", "delete,compact, delete"),
        (POLICY, "delete,compact, delete", _SUBTRACT, "delete", "compact, delete"),
        (POLICY, "compact, delete", _SUBTRACT, "compact", " delete"),
        (POLICY, "delete", _SUBTRACT, "x", "delete"),
        (POLICY, "delete", _APPEND, "", "delete,"),
        (POLICY, None, _SUBTRACT, "delete", ""),
        (POLICY, "", _APPEND, "compact", "compact"),
        (REPLICAS, None, _APPEND, "0:1,1:1", "0:1,1:1"),
        (REPLICAS, "0:1,1:1", _APPEND, "1:1,1:1,2:1,", "0:1,1:1,2:1"),
        (REPLICAS, "0:1,1:1,2:1", _SUBTRACT, "0:1,5:5", "1:1,2:1"),
        (REPLICAS, " 0:1 , 1:1", _APPEND, "1:1", " 0:1 , 1:1,1:1"),
        (REPLICAS, " 0:1 , 1:1,1:1", _SUBTRACT, "0:1", " 0:1 , 1:1,1:1"),
        (REPLICAS, "0:1", _APPEND, ",", "0:1"),
    ],
)
def test_a_list_gets_longer_and_shorter(
    name: str, before: str | None, operation: ConfigOperation, operand: str, after: str
) -> None:
    configs = {} if before is None else {name: before}
    assert altered(configs, [ConfigChange(name, operation, operand)], {}) == {name: after}


def test_a_list_that_is_not_set_begins_as_the_brokers() -> None:
    change = ConfigChange(POLICY, _APPEND, "delete")
    assert altered({}, [change], {POLICY: "compact"}) == {POLICY: "compact,delete"}


def test_values_are_set_and_taken_away_and_others_stay() -> None:
    changes = [
        ConfigChange("retention.ms", ConfigOperation.SET, "5"),
        ConfigChange("segment.ms", ConfigOperation.DELETE, ""),
        ConfigChange("no.such", ConfigOperation.DELETE, ""),
    ]
    before = {"segment.ms": "1", "preallocate": "true"}
    assert altered(before, changes, {}) == {"preallocate": "true", "retention.ms": "5"}
    assert before == {"segment.ms": "1", "preallocate": "true"}


@pytest.mark.parametrize("name", ["retention.ms", "no.such"])
def test_only_lists_get_longer_and_shorter(name: str) -> None:
    for operation in (_APPEND, _SUBTRACT):
        with pytest.raises(
            InvalidConfig, match=f"Can't {operation.name} to key {name} because its type is not LIST"
        ):
            altered({}, [ConfigChange(name, operation, "1")], {})
