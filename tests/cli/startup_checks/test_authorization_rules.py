from __future__ import annotations

from broker_core.cli.startup_checks.authorization_rules import authorization_checks
from tests.cli.startup_checks.findings import levels, settings, text

RULES = [
    {"roles": ["team-*"], "namespaces": ["acme/*"], "actions": ["list", "lookup"]},
    {"roles": ["team-a"], "namespaces": ["acme/shop"], "actions": ["list"]},
]


def test_without_rules_everybody_may_do_everything() -> None:
    found = list(authorization_checks(settings()))
    assert levels(found) == {"authorization": "ok"}
    assert "everybody may do everything" in text(found, "authorization")


def test_with_authentication_and_without_rules_nobody_may_do_anything() -> None:
    authentication = {"methods": ["basic"], "basic": {"file": "users"}}
    found = list(authorization_checks(settings(authentication=authentication)))
    assert levels(found) == {"authorization": "warning"}
    assert "everything is denied" in text(found, "authorization")


def test_each_rule_is_shown_and_one_that_never_applies_is_warned_of() -> None:
    found = list(authorization_checks(settings(authorization={"super_roles": ["admin"], "rules": RULES})))
    assert levels(found) == {
        "authorization": "ok",
        "authorization.rules.1": "ok",
        "authorization.rules.2": "warning",
    }
    assert text(found, "authorization.rules.1") == "team-* may list, lookup in acme/*"
    assert text(found, "authorization.rules.2") == "it never applies: rule 1 allows all of it"
    assert "admin may do everything" in text(found, "authorization")


def test_rules_that_nobody_asks() -> None:
    found = list(authorization_checks(settings(authorization={"mode": "allow", "rules": RULES})))
    assert "authorization.mode is 'allow'" in text(found, "authorization.rules.1")


def test_a_server_that_denies_everything() -> None:
    found = list(authorization_checks(settings(authorization={"mode": "rules"})))
    assert levels(found) == {"authorization": "warning"}
    assert "everything is denied" in text(found, "authorization")
