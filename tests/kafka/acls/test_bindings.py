from __future__ import annotations

from broker_core.kafka.acls.bindings import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    binding_of,
    binding_text,
    known,
)


def bits(*operations: Operation) -> int:
    return sum(1 << operation for operation in operations)


def test_the_bits_are_those_of_the_operations_on_a_resource() -> None:
    assert bits(*range_of("READ", "DESCRIBE"), Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS) == (
        TOPIC_OPERATIONS
    )
    assert bits(*range_of("CREATE", "CREATE"), *range_of("ALTER", "IDEMPOTENT_WRITE")) == CLUSTER_OPERATIONS


def range_of(first: str, last: str) -> list[Operation]:
    return [each for each in Operation if Operation[first] <= each <= Operation[last]]


def test_a_number_that_kafka_does_not_know_is_unknown() -> None:
    assert known(Operation, 8) is Operation.DESCRIBE
    assert known(Operation, 99) is known(Operation, 0) is Operation.UNKNOWN


def test_a_binding_of_numbers_and_in_words() -> None:
    binding = binding_of((2, "orders", 4, "User:ann", "*", 3, 2))
    assert binding == (
        ResourceType.TOPIC,
        "orders",
        PatternType.PREFIXED,
        "User:ann",
        "*",
        Operation.READ,
        Permission.DENY,
    )
    assert binding.permission is Permission.DENY
    assert binding_text(binding) == "deny User:ann from *: READ on topic prefixed orders"
    assert binding_of((99, "x", 3, "User:a", "*", 99, 3)).resource_type is ResourceType.UNKNOWN
