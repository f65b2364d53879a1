from __future__ import annotations

from broker_core.client.kafka.acl_fields import binding_of, fields_of, filter_fields
from broker_core.kafka.acls.acl_filters import AclFilter
from broker_core.kafka.acls.bindings import AclBinding, Operation, PatternType, Permission, ResourceType

BINDING = AclBinding(
    ResourceType.TOPIC, "orders", PatternType.PREFIXED, "User:a", "*", Operation.READ, Permission.DENY
)


def test_a_filter_of_everything() -> None:
    assert filter_fields(AclFilter()) == {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }


def test_a_binding_there_and_back() -> None:
    fields = fields_of(BINDING)
    row = fields | {"pattern_type": fields["resource_pattern_type"]}
    assert binding_of(row, row) == BINDING


def test_what_a_later_kafka_has_is_unknown() -> None:
    fields = fields_of(BINDING) | {"pattern_type": 77, "operation": 77}
    found = binding_of(fields, fields)
    assert (found.pattern, found.operation) == (PatternType.UNKNOWN, Operation.UNKNOWN)
