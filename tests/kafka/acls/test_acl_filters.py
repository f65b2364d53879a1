"""Filters find the bindings that a real Kafka broker finds, and odd bindings are refused in its words."""

from __future__ import annotations

from typing import Any

from broker_core.kafka.acls.acl_filters import AclFilter, binding_fault, mistake_in
from broker_core.kafka.acls.bindings import (
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    known,
)
from tests.support.one_test import in_one_test
from tests.support.vectors import acl_filters


def _values(row: list[Any]) -> tuple[Any, ...]:
    kind, name, pattern, principal, host, operation, permission = row
    return (
        known(ResourceType, kind),
        name,
        known(PatternType, pattern),
        principal,
        host,
        known(Operation, operation),
        known(Permission, permission),
    )


_STORED = [AclBinding(*_values(row)) for row in acl_filters()["acls"]]
#: Where Kafka closes the connection instead: the API does so before it asks.
_CLOSED = [row for row in acl_filters()["describe"] if row["error"] is None]


def test_filters_find_what_kafka_finds() -> None:
    cases = [row for row in acl_filters()["describe"] + acl_filters()["delete"] if row["error"]]
    assert len(cases) > 250
    assert len(_CLOSED) == 4
    for row in cases:
        asked = AclFilter(*_values(row["filter"]))
        found = sorted(binding for binding in _STORED if asked.matches(binding))
        assert found == [AclBinding(*_values(binding)) for binding in row.get("found", row.get("deleted"))]


def test_a_filter_of_an_unknown_kind_is_told_by_the_words_of_kafka() -> None:
    for row in acl_filters()["delete"]:
        if row["error"] and row["error"][0]:
            asked = AclFilter(*_values(row["filter"]))
            assert row["error"] == [42, f"Unknown {asked.has_unknown}."]
    assert AclFilter().has_unknown is None


@in_one_test("row", acl_filters()["create"])
def test_bindings_are_refused_as_by_kafka(row: dict[str, Any]) -> None:
    fault = binding_fault(AclBinding(*_values(row["acl"])))
    if row["error"] is None:
        assert fault is not None
    elif row["error"][0] == -1:  # Kafka has no better code for what is for filters alone
        assert fault is not None
        assert fault.endswith(("ANY", "MATCH"))
    else:
        assert fault == (row["error"][1] or None)


def test_bindings_that_kafka_stores_and_that_are_about_nobody_or_nothing() -> None:
    good = AclBinding(
        ResourceType.TOPIC, "a", PatternType.LITERAL, "User:x", "*", Operation.READ, Permission.ALLOW
    )
    assert mistake_in(good) is None
    assert mistake_in(good._replace(operation=Operation.ALL)) is None
    for odd, told in (
        (good._replace(principal="Group:x"), "no principal"),
        (good._replace(principal="User:"), "no principal"),
        (good._replace(operation=Operation.CLUSTER_ACTION), "TOPIC only supports operations"),
    ):
        assert binding_fault(odd) is None
        assert told in str(mistake_in(odd))
    empty = good._replace(name="")
    assert mistake_in(empty) == binding_fault(empty) is not None
