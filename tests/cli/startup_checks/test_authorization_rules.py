from __future__ import annotations

from pathlib import Path
from typing import Any

from broker_core.cli.startup_checks.authorization_rules import authorization_checks, names_lost_checks
from tests.cli.startup_checks.findings import levels, settings, text
from tests.support.catalogue_topics import create_topics

RULES: list[dict[str, Any]] = [
    {"roles": ["team-*"], "namespaces": ["acme/*"], "actions": ["list", "lookup"]},
    {"roles": ["team-a"], "namespaces": ["acme/shop"], "actions": ["list"]},
]
BASIC = {"methods": ["basic"], "basic": {"file": "users"}}


def test_without_rules_everybody_may_do_everything() -> None:
    found = list(authorization_checks(settings()))
    assert levels(found) == {"authorization": "ok"}
    assert "everybody may do everything" in text(found, "authorization")


def test_with_authentication_and_without_rules_nobody_may_do_anything() -> None:
    found = list(authorization_checks(settings(authentication=BASIC)))
    assert levels(found) == {"authorization": "warning"}
    assert "everything is denied" in text(found, "authorization")


def test_each_rule_is_shown_and_one_that_never_applies_is_warned_of() -> None:
    table = {"super_roles": ["admin"], "rules": RULES}
    found = list(authorization_checks(settings(authentication=BASIC, authorization=table)))
    assert levels(found) == {
        "authorization": "ok",
        "authorization.rules.1": "ok",
        "authorization.rules.2": "warning",
    }
    assert text(found, "authorization.rules.1") == "team-* may list, lookup in acme/*"
    assert text(found, "authorization.rules.2") == "it never applies: rule 1 allows all of it"
    assert "admin may do everything" in text(found, "authorization")


def test_rules_deny_everything_where_nobody_can_have_a_role() -> None:
    rules = {"super_roles": ["admin"], "rules": RULES}
    said = "without authentication no client has a role, so everything is denied"
    assert text(list(authorization_checks(settings(authorization=rules))), "authorization") == said
    kafka = {"sasl": {"mechanisms": ["SCRAM-SHA-256"]}}
    for roles in ({"kafka": kafka}, {"plugins": {"enabled": ["logins"]}}):
        found = list(authorization_checks(settings(authorization=rules, **roles)))
        assert "admin may do everything" in text(found, "authorization")


def test_rules_that_nobody_asks() -> None:
    found = list(authorization_checks(settings(authorization={"mode": "allow", "rules": RULES})))
    assert "authorization.mode is 'allow'" in text(found, "authorization.rules.1")


def test_a_server_that_denies_everything() -> None:
    found = list(authorization_checks(settings(authorization={"mode": "rules"})))
    assert levels(found) == {"authorization": "warning"}
    assert "everything is denied" in text(found, "authorization")


def test_what_roles_gain_and_lose_by_one_table_of_rights_is_said() -> None:
    rules = [
        RULES[0],
        {"roles": ["k"], "namespaces": ["*"], "actions": ["list", "admin"]},
        {"roles": ["p"], "namespaces": ["*"], "actions": ["lookup"]},
    ]
    found = list(authorization_checks(settings(authorization={"rules": rules})))
    assert text(found, "authorization.rules.1") == "team-* may list, lookup in acme/*"
    assert text(found, "authorization.rules.2") == (
        "k may list, admin in *; without lookup: list shows partitions, schemas and configs of topics too, "
        "admin deletes topics over Kafka too"
    )
    assert text(found, "authorization.rules.3") == (
        "p may lookup in *; without list: lookup shows no configs and properties of topics"
    )


def test_names_that_rules_about_topics_take_away(tmp_path: Path) -> None:
    path = tmp_path / "topics.sqlite"
    create_topics(path, *(f"persistent://acme/shop/orders-{number}" for number in range(10)))
    rules = [*RULES[:1], {**RULES[1], "effect": "deny", "topics": ["*-1", "*-2"]}]
    table = settings(authorization={"rules": rules}, catalog={"path": str(path)})
    (found,) = names_lost_checks(table)
    assert (found.level, found.name) == ("ok", "authorization.topics")
    assert found.text == "team-a does not see 2 of 10 in acme/shop: some clients unsubscribe"
    # Names that are in no catalogue are not counted.
    plugins = {"enabled": ["postgres", "explorer", "none"], "postgres": {"dsn": "postgresql://nowhere"}}
    behind = settings(authorization={"rules": rules}, catalog={"path": str(path)}, plugins=plugins)
    said, found_too = names_lost_checks(behind)
    assert (said.level, found_too) == ("ok", found)
    assert said.text == "not all names that roles lose are counted: not those of plugin 'postgres'"
    behind = settings(authorization={"rules": rules}, upstream={"service_url": "pulsar://127.0.0.1:1"})
    (said,) = names_lost_checks(behind)
    assert said.text.endswith(": not those of the cluster behind the server")
    denied = settings(
        authorization={"rules": [*rules[:1], {**rules[1], "topics": ["*"]}]}, catalog={"path": str(path)}
    )
    (found,) = names_lost_checks(denied)
    assert found.text == "team-a does not see 10 of 10 in acme/shop (denied: AuthorizationError)"
    overlapping = [rules[0], {**rules[1], "roles": ["*-ext"]}]
    (found,) = names_lost_checks(settings(authorization={"rules": overlapping}, catalog={"path": str(path)}))
    assert (
        found.text
        == "a role that matches team-* and *-ext does not see 2 of 10 in acme/shop: some clients unsubscribe"
    )
    # A name with a dot is matched by what could be a regular expression, and a namespace without topics tells nothing.
    create_topics(path, "persistent://acme/shop/orders.eu")
    rules += [{**rules[1], "topics": ["orders.*", "refund.*", "ledger"]}]
    rules += [{**rules[1], "namespaces": ["acme/none"]}]
    warned = [
        each
        for each in names_lost_checks(settings(authorization={"rules": rules}, catalog={"path": str(path)}))
        if each.level == "warning"
    ]
    assert [(each.name, each.text) for each in warned] == [
        ("authorization.rules.3.topics", "it denies no topic of the catalogue by 'refund.*', 'ledger'")
    ]
    assert (
        list(names_lost_checks(settings(authorization={"rules": RULES}, catalog={"path": str(path)}))) == []
    )
