from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from broker_core.settings import AuthorizationSettings, SettingsError, find_problems, load_settings
from tests.support.files import file_with

RULE = {"roles": ["team-*"], "namespaces": ["acme/*"], "actions": ["list"]}


def test_a_table_as_it_is_written(tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "s.toml",
        '[authorization]\nmode = "rules"\nsuper_roles = ["admin"]\n'
        '[[authorization.rules]]\nroles = ["team-*"]\nnamespaces = ["acme/*"]\n'
        'actions = ["list", "lookup", "monitor", "admin"]\n'
        '[[authorization.rules]]\nroles = ["*"]\nnamespaces = ["*"]\nactions = ["*"]\n',
    )
    table = load_settings(file, environment={}).settings.authorization
    assert (table.mode, table.super_roles) == ("rules", ("admin",))
    assert [rule.roles for rule in table.rules] == [("team-*",), ("*",)]
    assert table.rules[0].actions == ("list", "lookup", "monitor", "admin")


def test_rules_in_the_environment_are_json() -> None:
    variables = {
        "BROKER_CORE_AUTHORIZATION__RULES": json.dumps([RULE]),
        "BROKER_CORE_AUTHORIZATION__SUPER_ROLES": "a,b",
    }
    table = load_settings(environment=variables).settings.authorization
    assert table.rules[0].roles == ("team-*",)
    assert table.super_roles == ("a", "b")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"roles": []}, "at least 1"),
        ({"roles": [""]}, "a role is empty"),
        ({"namespaces": ["acme"]}, "'acme' is not TENANT/NAMESPACE"),
        ({"namespaces": ["acme*"]}, "'acme\\*' is not TENANT/NAMESPACE"),
        ({"namespaces": ["acme/"]}, "'acme/' is not"),
        ({"namespaces": ["a/b/c"]}, "'a/b/c' is not"),
        ({"actions": ["produce"]}, "should be 'list', 'lookup', 'monitor', 'admin' or"),
        ({"actions": ["li*"]}, "should be 'list', 'lookup', 'monitor', 'admin' or"),
        ({"actions": []}, "at least 1"),
    ],
)
def test_a_wrong_rule_is_named(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        AuthorizationSettings.model_validate({"rules": [RULE | wrong]})


@pytest.mark.parametrize("missing", sorted(RULE))
def test_a_rule_says_all_three(missing: str) -> None:
    with pytest.raises(ValidationError, match=missing):
        AuthorizationSettings.model_validate(
            {"rules": [{key: value for key, value in RULE.items() if key != missing}]}
        )


@pytest.mark.parametrize("role", ["", "*", "ops-*"])
def test_a_super_role_is_one_role(role: str) -> None:
    with pytest.raises(ValidationError, match="is not the name of one role"):
        AuthorizationSettings.model_validate({"super_roles": [role]})


def test_an_unknown_key_of_a_rule_names_the_file(tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "s.toml",
        '[[authorization.rules]]\nroles = ["a"]\nnamespaces = ["*"]\nactions = ["list"]\nrole = "b"\n',
    )
    with pytest.raises(
        SettingsError,
        match=r"s\.toml: authorization\.rules\[1\]\.role: unknown setting, did you mean 'roles'\?",
    ):
        load_settings(file, environment={})
    loaded, problems = find_problems(file, environment={})
    assert loaded is not None
    assert [problem.path for problem in problems] == [("authorization", "rules", "role")]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"topics": []}, "at least 1 item"),
        ({"topics": [""]}, "no topic has such a name"),
        ({"topics": ["x" * 1001]}, "at most 1000 are allowed"),
        ({"topics": ["persistent://a/b/c"]}, "write its own name"),
        ({"topics": ["a/b/c"]}, "write its own name"),
        ({"topics": ["*/c"]}, "write its own name"),
        ({"topics": ["c-partition-1"]}, "leave -partition-N out"),
        ({"topics": ["c"], "actions": ["list", "monitor"]}, "topics and the action monitor"),
        ({"effect": "refuse"}, "'allow' or 'deny'"),
    ],
)
def test_what_a_rule_about_topics_cannot_be(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        AuthorizationSettings.model_validate({"rules": [RULE | wrong]})


def test_a_rule_about_topics() -> None:
    (rule,) = AuthorizationSettings.model_validate(
        {"rules": [RULE | {"topics": ["orders-*"], "effect": "deny", "actions": ["*"]}]}
    ).rules
    assert (rule.topics, rule.effect) == (("orders-*",), "deny")
