"""The decisions of ACLs are those of a real Kafka broker, recorded in tests/vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core.kafka.acls.acl_rules import AclRules, AskerRules
from broker_core.kafka.acls.bindings import (
    CLUSTER_NAME,
    AclBinding,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from broker_core.kafka.acls.name_patterns import SortedNames
from tests.support.vectors import acl_cases

_TOPICS = sorted(("a", "ab", "abc", "abcd", "b", "ba", "A", "a.b"))
_MISSING = "abd"
_NAMES = SortedNames(pa.array([name.encode() for name in _TOPICS], pa.large_binary()))
_DESCRIBE = Operation.DESCRIBE
_TOPIC = ResourceType.TOPIC


def _bindings(rows: list[list[Any]]) -> list[AclBinding]:
    return [
        AclBinding(
            ResourceType(kind),
            name,
            PatternType(pattern),
            principal,
            host,
            Operation(operation),
            Permission(permission),
        )
        for kind, name, pattern, principal, host, operation, permission in rows
    ]


def _asked() -> list[tuple[AskerRules, dict[str, Any]]]:
    return [
        (
            AclRules(_bindings(case["acls"]), super_users=["User:root"], everyone=case["everyone"]).of(
                ask["principal"], ask["host"]
            ),
            ask,
        )
        for case in acl_cases()
        for ask in case["asks"]
    ]


def test_decisions_about_one_topic_are_those_of_kafka() -> None:
    asked = _asked()
    assert len(asked) == 1_200
    for rules, answer in asked:
        for operation in (3, 4, 6, 7, 10, 11):
            allowed = [name for name in _TOPICS if rules.allows(Operation(operation), _TOPIC, name)]
            assert allowed == answer[f"op{operation}"]
        denied = [name for name in sorted((*_TOPICS, _MISSING)) if not rules.allows(_DESCRIBE, _TOPIC, name)]
        assert denied == answer["denied"]
        on_cluster = rules.allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        creatable = [name for name in _TOPICS if on_cluster or rules.allows(Operation.CREATE, _TOPIC, name)]
        assert creatable == answer["op5"]


def test_groups_and_the_bits_of_the_cluster_are_those_of_kafka() -> None:
    for rules, answer in _asked():
        assert answer["groups"] == [
            name for name in ("a", "ab", "g") if rules.allows(_DESCRIBE, ResourceType.GROUP, name)
        ]
        described = rules.allows(_DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        assert answer["cluster"] == (rules.operations(ResourceType.CLUSTER, CLUSTER_NAME) if described else 0)


def test_masks_and_bits_of_columns_are_the_listings_of_kafka() -> None:
    masked = 0
    for rules, answer in _asked():
        mask = rules.mask(_DESCRIBE, _NAMES)
        masked += mask is not None and bool(mask.any())
        column = rules.operations_column(_NAMES)
        listed = {name: int(column[row]) for row, name in enumerate(_TOPICS) if mask is None or mask[row]}
        assert listed == answer["listed"]
        assert all(rules.operations(_TOPIC, name) == seen for name, seen in listed.items())
    assert masked > 300


def _rule(
    name: str,
    pattern: PatternType = PatternType.LITERAL,
    permission: Permission = Permission.ALLOW,
    host: str = "*",
) -> AclBinding:
    return AclBinding(_TOPIC, name, pattern, "User:ann", host, _DESCRIBE, permission)


@pytest.mark.parametrize("everyone", [False, True])
def test_a_mask_decides_as_the_question_about_each_name(everyone: bool) -> None:
    names = [f"t-{row:04}" for row in range(2_000)]
    rules = AclRules(
        [
            *(_rule(name) for name in names[::3]),
            *(_rule(f"t-{row:03}", PatternType.PREFIXED, Permission.DENY) for row in range(0, 200, 7)),
            _rule("t-1", PatternType.PREFIXED),
            _rule("t-1000", PatternType.PREFIXED),
            _rule("zz"),
            _rule("a", PatternType.PREFIXED),
        ],
        everyone=everyone,
    ).of("User:ann", "1.1.1.1")
    for start, end in ((0, 2_000), (0, 1), (700, 1_300), (1_999, 2_000), (5, 5)):
        part = pa.array([name.encode() for name in names], pa.large_binary()).slice(start, end - start)
        mask = rules.mask(_DESCRIBE, SortedNames(part))
        found = np.ones(len(part), np.bool_) if mask is None else mask
        assert found.tolist() == [rules.allows(_DESCRIBE, _TOPIC, name) for name in names[start:end]]


class _Chunk:
    names = _NAMES.column


def test_the_mask_of_a_chunk_is_that_of_its_names_and_a_super_user_has_none() -> None:
    rules = AclRules([_rule("a", PatternType.PREFIXED)], super_users=["User:root"])
    chunk = _Chunk()
    for _ in range(2):
        mask = rules.of("User:ann", "h").chunk_mask(_DESCRIBE, chunk)
        assert mask is not None
        assert mask.tolist() == [name.startswith("a") for name in _TOPICS]
    assert rules.of("User:root", "h").chunk_mask(_DESCRIBE, chunk) is None


def test_an_asker_of_whom_no_acl_tells_has_no_host_of_an_acl() -> None:
    rules = AclRules([_rule("a", host="")])
    assert not rules.of("User:ann", "1.1.1.1").allows(_DESCRIBE, _TOPIC, "a")


def test_askers_that_no_acl_tells_apart_share_what_is_compiled() -> None:
    rules = AclRules([_rule("a", host="10.0.0.1")])
    assert rules.of("User:bob", "1.1.1.1") is rules.of("User:eve", "2.2.2.2")
    assert rules.of("User:ann", "1.1.1.1") is not rules.of("User:bob", "1.1.1.1")


def test_an_empty_column_has_an_empty_mask() -> None:
    names = SortedNames(pa.array([], pa.large_binary()))
    assert AclRules([_rule("a")]).of("User:ann", "h").mask(_DESCRIBE, names) is None
    assert AclRules([_rule("a")]).of("User:ann", "h").operations_column(names).tolist() == []


@pytest.mark.parametrize(
    ("host", "asker"),
    [("0:0:0:0:0:0:0:1", "::1"), ("::1", "0:0:0:0:0:0:0:1"), ("10.0.0.1", "::ffff:10.0.0.1"), ("a:b", "a:b")],
)
def test_an_address_is_the_same_however_it_is_written(host: str, asker: str) -> None:
    rules = AclRules([_rule("a", host=host)])
    assert rules.of("User:ann", asker).allows(_DESCRIBE, _TOPIC, "a")
    assert not rules.of("User:ann", "::2").allows(_DESCRIBE, _TOPIC, "a")
