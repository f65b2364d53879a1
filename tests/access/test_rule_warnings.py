from __future__ import annotations

from typing import Any

import pytest

from broker_core.access.rule_warnings import unused_rules
from broker_core.settings import AuthorizationSettings


def unused(*rules: tuple[str, str, str], super_roles: tuple[str, ...] = ()) -> dict[int, str]:
    tables: list[dict[str, Any]] = [
        {"roles": roles.split(), "namespaces": namespaces.split(", "), "actions": actions.split()}
        for roles, namespaces, actions in rules
    ]
    return dict(
        unused_rules(AuthorizationSettings.model_validate({"rules": tables, "super_roles": super_roles}))
    )


def test_rules_that_each_decide_something() -> None:
    assert not unused(
        ("team-*", "acme/*", "list"),
        ("team-*", "acme/*", "lookup"),
        ("team-* ops", "acme/*", "list"),
        ("*", "*", "list"),
    )


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (("a", "t/n", "list"), ("a", "t/n", "list")),
        (("team-*", "*", "*"), ("team-1 team-2*", "t/n, acme/*", "list admin")),
        (("*", "acme/*", "list lookup"), ("a", "acme/shop, acme/b", "lookup")),
        (("a", "*/*", "list"), ("a", "*", "list")),
        (("a", "*", "list lookup admin"), ("a", "*", "*")),
        (("a", "*", "admin"), ("a", "acme/*", "monitor")),
    ],
)
def test_a_rule_behind_one_that_allows_as_much(
    earlier: tuple[str, str, str], later: tuple[str, str, str]
) -> None:
    assert unused(earlier, later) == {2: "rule 1 allows all of it"}


def test_a_rule_for_those_who_may_do_everything() -> None:
    found = unused(("admin", "*", "list"), ("admin b", "*", "list"), super_roles=("admin",))
    assert found == {1: "admin may do everything already (authorization.super_roles)"}


def test_a_rule_about_no_namespace() -> None:
    assert unused(("a", "ac me/*", "list")) == {1: "no namespace can be called ac me/*"}
    assert not unused(("a", "ac me/*, acme/*", "list"))


def ruled(*rules: dict[str, Any]) -> dict[int, str]:
    every = [{"roles": ["a"], "namespaces": ["*"], "actions": ["list"]} | each for each in rules]
    return dict(unused_rules(AuthorizationSettings.model_validate({"rules": every})))


def test_rules_about_topics() -> None:
    assert not ruled({"topics": ["a-*"]}, {}, {"topics": ["b*"], "effect": "deny"})
    assert ruled({"topics": ["a-*", "b"]}, {"topics": ["a-1", "a-?", "b"]}) == {2: "rule 1 allows all of it"}
    assert ruled({"effect": "deny"}, {"effect": "deny", "topics": ["x"]}) == {2: "rule 1 denies all of it"}
    assert ruled({"topics": ["a-1"]}, {"effect": "deny", "topics": ["a*"]}) == {1: "rule 2 denies all of it"}
    assert not ruled({"topics": ["a?"]}, {"topics": ["a"]}, {"topics": ["a*x"], "effect": "deny"})
