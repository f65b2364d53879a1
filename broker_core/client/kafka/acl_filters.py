"""Which ACLs are meant: each part a value, or anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker_core.kafka.acls.bindings import AclBinding, Operation, PatternType, Permission, ResourceType

__all__ = ["AclFilter", "binding_of", "fields_of"]


@dataclass(frozen=True, slots=True)
class AclFilter:
    """``ANY`` or ``None`` is anything. With the pattern ``MATCH`` a name means what applies to this resource: bindings
    by its name, by a prefix of it, and by ``*``.
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def fields(self) -> dict[str, Any]:
        """The filter in a request of DescribeAcls or DeleteAcls."""
        return {
            "resource_type_filter": self.resource_type,
            "resource_name_filter": self.name,
            "pattern_type_filter": self.pattern,
            "principal_filter": self.principal,
            "host_filter": self.host,
            "operation": self.operation,
            "permission_type": self.permission,
        }


def binding_of(resource: dict[str, Any], acl: dict[str, Any]) -> AclBinding:
    """The binding in an answer; what has no name here is ``UNKNOWN``."""
    return AclBinding(
        _known(ResourceType, resource["resource_type"]),
        resource["resource_name"],
        _known(PatternType, resource["pattern_type"]),
        acl["principal"],
        acl["host"],
        _known(Operation, acl["operation"]),
        _known(Permission, acl["permission_type"]),
    )


def fields_of(binding: AclBinding) -> dict[str, Any]:
    """The binding in a request of CreateAcls."""
    return {
        "resource_type": binding.resource_type,
        "resource_name": binding.name,
        "resource_pattern_type": binding.pattern,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation,
        "permission_type": binding.permission,
    }


def _known(kind: Any, number: int) -> Any:
    try:
        return kind(number)
    except ValueError:
        return kind(0)
