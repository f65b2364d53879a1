"""Which bindings an operation asks for, and the bits of operations."""

from __future__ import annotations

from broker_core.kafka.acls.bindings import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, Operation, ResourceType
from broker_core.kafka.acls.operations import OPERATIONS, allowing, bits, denying


def test_operations_that_imply_another_allow_it_and_do_not_deny_it() -> None:
    assert Operation.READ in allowing(Operation.DESCRIBE)
    assert Operation.CREATE not in allowing(Operation.DESCRIBE)
    assert denying(Operation.DESCRIBE) == {Operation.ALL, Operation.DESCRIBE}


def test_the_bits_of_all_operations_are_those_of_kafka() -> None:
    assert bits(OPERATIONS[ResourceType.TOPIC]) == TOPIC_OPERATIONS
    assert bits(OPERATIONS[ResourceType.CLUSTER]) == CLUSTER_OPERATIONS
