from __future__ import annotations

from broker_core.client.kafka.authorized_operations import authorized_operations
from broker_core.kafka.acls.bindings import Operation
from broker_core.wire.kafka import NOT_REQUESTED


def test_bits_are_operations() -> None:
    assert authorized_operations(3576) == frozenset(
        {
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    )
    assert authorized_operations(0) == frozenset()


def test_what_was_not_asked_is_not_none_of_them() -> None:
    assert authorized_operations(NOT_REQUESTED) is None


def test_bits_without_a_name_are_left_out() -> None:
    assert authorized_operations(1 << 30 | 1 << 3 | 0b11) == frozenset({Operation.READ})
