"""Filters of ACLs, by which clients describe and delete them, and the check of ACLs to be stored. Both as in Kafka."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeVar

from broker_core.kafka.acls.bindings import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from broker_core.kafka.acls.name_patterns import WILDCARD
from broker_core.kafka.acls.operations import OPERATIONS

__all__ = ["AclFilter", "binding_fault", "mistake_in", "principal_fault"]

_Kind = TypeVar("_Kind", bound=IntEnum)


class AclFilter(NamedTuple):
    """A filter of bindings. ``None`` matches any value, as does ``ANY`` of an enumeration; ``UNKNOWN`` matches none.

    With ``MATCH`` the name is a resource's, and all bindings that apply to it are found: literal ones, prefixes of it,
    and the wildcard.
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def has_unknown(self) -> str | None:
        """The part of the filter that is ``UNKNOWN``, by Kafka's word."""
        if not (self.resource_type and self.pattern):
            return "patternFilter"
        return None if self.operation and self.permission else "entryFilter"

    def matches(self, binding: AclBinding) -> bool:
        return (
            _is(self.resource_type, binding.resource_type)
            and self._matches_name(binding)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and _is(self.operation, binding.operation)
            and _is(self.permission, binding.permission)
        )

    def _matches_name(self, binding: AclBinding) -> bool:
        if self.pattern is not PatternType.MATCH and not _is(self.pattern, binding.pattern):
            return False
        if self.name is None or self.name == binding.name:
            return True
        if self.pattern is not PatternType.MATCH:
            return False
        if binding.pattern is PatternType.PREFIXED:
            return self.name.startswith(binding.name)
        return binding.name == WILDCARD


def binding_fault(binding: AclBinding) -> str | None:
    """Why a binding cannot be stored, in Kafka's words; ``None`` if it can.

    Operations are not compared with the type of the resource: a meaningless one is stored, as in Kafka.
    """
    for word, value in (
        ("resourceType", binding.resource_type),
        ("patternType", binding.pattern),
        ("operation", binding.operation),
        ("permissionType", binding.permission),
    ):
        if not value or value == 1 or value is PatternType.MATCH:
            return f"Invalid {word} {value.name}"
    if not binding.name:
        return "Invalid empty resource name"
    if binding.resource_type is ResourceType.CLUSTER and binding.name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if ":" not in binding.principal:
        return (
            f"Could not parse principal from `{binding.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    return None


def principal_fault(principal: str) -> str | None:
    """Why no client can have this principal; ``None`` if one may."""
    if not principal.startswith("User:") or principal == "User:":
        return f"{principal!r} is no principal: write User:NAME"
    return None


def mistake_in(binding: AclBinding) -> str | None:
    """Why a binding cannot be stored, or would have no effect; ``None`` if neither.

    A server accepts the latter from Kafka's clients, as Kafka does. Commands and HTTP refuse it.
    """
    fault = principal_fault(binding.principal) or binding_fault(binding)
    if fault is not None:
        return fault
    there = (Operation.ALL, *OPERATIONS[binding.resource_type])
    if binding.operation in there:
        return None
    names = ", ".join(operation.name for operation in there)
    return f"ResourceType {binding.resource_type.name} only supports operations [{names}]"


def _is(wanted: _Kind, found: _Kind) -> bool:
    """Whether a filter's value matches; ``ANY`` is 1 in all enumerations."""
    return wanted == 1 or wanted is found
