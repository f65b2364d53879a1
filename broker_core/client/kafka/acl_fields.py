"""ACLs and filters of them as the fields of requests and answers."""

from __future__ import annotations

from typing import Any

from broker_core.kafka.acls import (
    AclBinding,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    known,
)

__all__ = ["binding_of", "fields_of", "filter_fields"]


def filter_fields(wanted: AclFilter) -> dict[str, Any]:
    """The filter in a request of DescribeAcls or DeleteAcls."""
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.pattern,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def binding_of(resource: dict[str, Any], acl: dict[str, Any]) -> AclBinding:
    """The binding in an answer; a number without a name here is ``UNKNOWN``."""
    return AclBinding(
        known(ResourceType, resource["resource_type"]),
        resource["resource_name"],
        known(PatternType, resource["pattern_type"]),
        acl["principal"],
        acl["host"],
        known(Operation, acl["operation"]),
        known(Permission, acl["permission_type"]),
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
