"""Kafka's access control lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.kafka.acls.acl_filters import AclFilter, binding_fault, mistake_in, principal_fault
    from broker_core.kafka.acls.acl_rules import AclRules, AskerRules
    from broker_core.kafka.acls.bindings import (
        CLUSTER_NAME,
        CLUSTER_OPERATIONS,
        TOPIC_OPERATIONS,
        AclBinding,
        Operation,
        PatternType,
        Permission,
        ResourceType,
        binding_of,
        binding_text,
        known,
        resource_text,
    )
    from broker_core.kafka.acls.compiled_masks import NamedChunk
    from broker_core.kafka.acls.name_patterns import SortedNames

__all__ = [
    "CLUSTER_NAME",
    "CLUSTER_OPERATIONS",
    "TOPIC_OPERATIONS",
    "AclBinding",
    "AclFilter",
    "AclRules",
    "AskerRules",
    "NamedChunk",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "SortedNames",
    "binding_fault",
    "binding_of",
    "binding_text",
    "known",
    "mistake_in",
    "principal_fault",
    "resource_text",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "AclBinding": ".bindings",
        "AclFilter": ".acl_filters",
        "AclRules": ".acl_rules",
        "AskerRules": ".acl_rules",
        "CLUSTER_NAME": ".bindings",
        "CLUSTER_OPERATIONS": ".bindings",
        "NamedChunk": ".compiled_masks",
        "Operation": ".bindings",
        "PatternType": ".bindings",
        "Permission": ".bindings",
        "ResourceType": ".bindings",
        "SortedNames": ".name_patterns",
        "TOPIC_OPERATIONS": ".bindings",
        "binding_fault": ".acl_filters",
        "binding_of": ".bindings",
        "binding_text": ".bindings",
        "known": ".bindings",
        "mistake_in": ".acl_filters",
        "principal_fault": ".acl_filters",
        "resource_text": ".bindings",
    },
)
