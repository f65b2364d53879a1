"""The operations of Kafka's ACLs: which ones a binding allows or denies, and their bits in answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from broker_core.kafka.acls.bindings import Operation, ResourceType

__all__ = ["OPERATIONS", "allowing", "bits", "denying"]

#: The operations on resources of a type, besides ``ALL``: AclEntry.supportedOperations of Kafka. Answers have those on
#: topics and the cluster.
OPERATIONS: Final[Mapping[ResourceType, tuple[Operation, ...]]] = MappingProxyType(
    {
        ResourceType.TOPIC: (
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        ResourceType.CLUSTER: (
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        ),
        ResourceType.GROUP: (
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        ),
        ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
        ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
        ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
    }
)
#: The operations that imply another one when allowed; denials imply none.
_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}


def allowing(operation: Operation) -> frozenset[Operation]:
    """The operations whose ``ALLOW`` bindings allow this one."""
    return frozenset((Operation.ALL, operation, *_IMPLIED_BY.get(operation, ())))


def denying(operation: Operation) -> frozenset[Operation]:
    """The operations whose ``DENY`` bindings deny this one."""
    return frozenset((Operation.ALL, operation))


def bits(operations: Iterable[Operation]) -> int:
    """Authorized operations in the form of answers: a bit for each, at its number."""
    return sum(1 << operation for operation in operations)
