"""An ACL of Kafka: a binding of a principal and an operation to a resource. The numbers are those of the protocol."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

__all__ = [
    "CLUSTER_NAME",
    "CLUSTER_OPERATIONS",
    "TOPIC_OPERATIONS",
    "AclBinding",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "binding_of",
    "binding_text",
    "known",
    "resource_text",
]

_Kind = TypeVar("_Kind", bound=IntEnum)

#: The only name of a resource of the type ``CLUSTER``.
CLUSTER_NAME: Final = "kafka-cluster"
#: The bits of all operations on a topic, and on the cluster, for the authorized operations in answers.
TOPIC_OPERATIONS: Final = 3576
CLUSTER_OPERATIONS: Final = 8096


class ResourceType(IntEnum):
    """Kind of resource that an ACL is about. ``ANY`` is for filters alone."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """The kinds of a binding's name; ``ANY`` and ``MATCH`` are only for filters."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """Operations; ``ANY`` is only for filters, and ``ALL`` stands for every operation."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Effect of an ACL. ``ANY`` is for filters alone."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class AclBinding(NamedTuple):
    """An ACL. ``principal`` is ``User:NAME`` or ``User:*``; ``host`` an IP address or ``*``."""

    resource_type: ResourceType
    name: str
    pattern: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission


def known(kind: type[_Kind], number: int) -> _Kind:
    """The member with a number; ``UNKNOWN`` for a number that Kafka does not know."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)


def binding_of(row: tuple[int, str, int, str, str, int, int]) -> AclBinding:
    """The binding of a row, in which enumerations are Kafka's numbers."""
    kind, name, pattern, principal, host, operation, permission = row
    return AclBinding(
        known(ResourceType, kind),
        name,
        known(PatternType, pattern),
        principal,
        host,
        known(Operation, operation),
        known(Permission, permission),
    )


def resource_text(binding: AclBinding) -> str:
    """The resource of a binding, as the audit names it: ``TYPE:PATTERN:NAME``."""
    return f"{binding.resource_type.name}:{binding.pattern.name}:{binding.name}"


def binding_text(binding: AclBinding) -> str:
    """A binding in one line."""
    kind = binding.resource_type.name.lower().replace("_", " ")
    prefixed = f" {binding.pattern.name.lower()}" if binding.pattern is PatternType.PREFIXED else ""
    return (
        f"{binding.permission.name.lower()} {binding.principal} from {binding.host}: {binding.operation.name} on "
        f"{kind}{prefixed} {binding.name}"
    )
