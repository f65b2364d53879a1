from __future__ import annotations

import re
from typing import Any

import pytest

from broker_core.cli.options.kafka_acls import (
    GivenBindings,
    given_operations,
    given_pattern,
    given_resources,
)
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.kafka.acls.bindings import Operation, PatternType, ResourceType, binding_text


@pytest.mark.parametrize("word", ["DescribeConfigs", "DESCRIBE_CONFIGS", "describe-configs"])
def test_an_operation_in_any_spelling(word: str) -> None:
    assert given_operations([word]) == [Operation.DESCRIBE_CONFIGS]
    assert given_operations(None) == [Operation.ALL]


def test_resources_of_each_kind() -> None:
    found = given_resources(["t"], ["g"], ["x"], cluster=True)
    assert found == [
        (ResourceType.TOPIC, "t"),
        (ResourceType.GROUP, "g"),
        (ResourceType.TRANSACTIONAL_ID, "x"),
        (ResourceType.CLUSTER, "kafka-cluster"),
    ]


def test_every_combination_is_a_binding() -> None:
    bindings = GivenBindings(
        allow_principal=["User:a"],
        deny_principal=["User:b"],
        host=["192.0.2.1", "192.0.2.2"],
        operation=["Read", "Write"],
        topic=["orders"],
        cluster=True,
        resource_pattern_type="prefixed",
    ).bindings()
    assert len(set(bindings)) == 16
    assert {each.pattern for each in bindings if each.resource_type is ResourceType.CLUSTER} == {
        PatternType.LITERAL
    }
    assert binding_text(bindings[0]) == "allow User:a from 192.0.2.1: READ on topic prefixed orders"


@pytest.mark.parametrize(
    ("allowed", "topics", "error"),
    [
        (None, ["orders"], "no principal is named"),
        (["User:a"], [], "no resource is named"),
        (["alice"], ["orders"], "write User:NAME"),
        (["User:"], ["orders"], "write User:NAME"),
        (["User:a"], [""], "Invalid empty resource name"),
    ],
)
def test_what_is_no_binding(allowed: list[str] | None, topics: list[str], error: str) -> None:
    with pytest.raises(UnusableQuestion, match=error):
        GivenBindings(allow_principal=allowed, topic=topics).bindings()


def test_what_is_no_word() -> None:
    with pytest.raises(UnusableQuestion, match="expected one of All, Read"):
        given_operations(["Any"])
    with pytest.raises(UnusableQuestion, match="literal or prefixed"):
        given_pattern("match")


@pytest.mark.parametrize(
    ("operations", "resource", "told"),
    [
        # As kafka-acls.sh of 4.3.1, whose order of the operations is none.
        (
            ["ClusterAction"],
            {"topic": ["t"]},
            "ResourceType TOPIC only supports operations [ALL, READ, WRITE, ",
        ),
        (["Read", "Create"], {"group": ["g"]}, "--operation CREATE: ResourceType GROUP only supports"),
        (["Describe", "Read"], {"topic": ["t"], "cluster": True}, "READ: ResourceType CLUSTER only supports"),
        (
            ["Read"],
            {"transactional_id": ["x"]},
            "only supports operations [ALL, WRITE, DESCRIBE, TWO_PHASE_COMMIT]",
        ),
    ],
)
def test_an_operation_that_there_is_not_on_a_resource_is_not_added(
    operations: list[str], resource: dict[str, Any], told: str
) -> None:
    given = GivenBindings(allow_principal=["User:a"], operation=operations, **resource)
    with pytest.raises(UnusableQuestion, match=re.escape(told)):
        given.meaningful_bindings()
    assert len(given.bindings()) == len(operations) * len(resource)  # which may be there, and are removed


@pytest.mark.parametrize("operation", [None, "Describe"])
def test_an_operation_that_there_is_on_each_resource(operation: str | None) -> None:
    given = GivenBindings(
        allow_principal=["User:a"],
        operation=None if operation is None else [operation],
        topic=["t"],
        group=["g"],
        transactional_id=["x"],
        cluster=True,
    )
    assert given.meaningful_bindings() == given.bindings()


@pytest.mark.parametrize("form", ["literal", "prefixed"])
def test_a_topic_that_there_cannot_be(form: str) -> None:
    for topic in ("acme/shop/orders", "orders-*", "x" * 250):
        given = GivenBindings(deny_principal=["User:a"], topic=[topic], resource_pattern_type=form)
        with pytest.raises(UnusableQuestion, match="no topic of Kafka can have this name"):
            given.meaningful_bindings()
        assert given.bindings(), "it may be there, and is removed"
    for topic in ("*", "orders-") if form == "literal" else (".", "orders-"):
        assert GivenBindings(
            allow_principal=["User:a"], topic=[topic], resource_pattern_type=form
        ).meaningful_bindings()
