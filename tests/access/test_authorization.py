from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.access.asker import ACTIONS, OPERATOR, Access, Asker
from broker_core.access.authorization import RULES_OF, AllowsEverybody, Authorization
from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.names import NamespaceName, TopicName
from broker_core.settings import AuthorizationSettings

RULES = [
    {"roles": ["team-*"], "namespaces": ["acme/*"], "actions": ["list", "lookup"]},
    {"roles": ["prometheus"], "namespaces": ["*"], "actions": ["monitor"]},
    {"roles": ["proxy"], "namespaces": ["*"], "actions": ["list", "lookup"]},
    {"roles": ["team-a"], "namespaces": ["shared/a-*"], "actions": ["*"]},
]


def made(authentication: bool = True, **table: Any) -> Authorization:
    table = {"super_roles": ["admin"], "rules": RULES} | table
    return Authorization(AuthorizationSettings.model_validate(table), authentication=authentication)


@pytest.mark.parametrize(
    ("role", "action", "namespace", "rule"),
    [
        ("admin", "admin", None, "authorization.super_roles"),
        ("admin", "list", "any/thing", "authorization.super_roles"),
        ("team-a", "list", "acme/shop", "rule 1: team-* may list, lookup in acme/*"),
        ("team-a", "lookup", "acme/shop", "rule 1: team-* may list, lookup in acme/*"),
        ("team-a", "admin", "shared/a-1", "rule 4: team-a may * in shared/a-*"),
        ("prometheus", "monitor", None, "rule 2: prometheus may monitor in *"),
    ],
)
def test_what_is_allowed_names_its_rule(role: str, action: str, namespace: str | None, rule: str) -> None:
    decision = made().decide(role, action, namespace)
    assert (decision.allowed, decision.rule) == (True, rule)


@pytest.mark.parametrize(
    ("role", "action", "namespace"),
    [
        ("team-a", "admin", "acme/shop"),
        ("team-a", "list", "acme2/shop"),
        ("team-a", "admin", None),
        ("team-b", "list", "shared/a-1"),
        ("xteam-a", "list", "acme/shop"),
        ("TEAM-a", "list", "acme/shop"),
        ("Admin", "list", "acme/shop"),
        ("prometheus", "list", "acme/shop"),
        ("prometheus", "admin", "acme/shop"),
        ("prometheus", "admin", None),
        ("", "list", "acme/shop"),
        (None, "list", "acme/shop"),
        ("team-" + "x" * 1024, "list", "acme/shop"),
    ],
)
def test_everything_else_is_denied(role: str | None, action: str, namespace: str | None) -> None:
    authorization = made()
    assert not authorization.decide(role, action, namespace).allowed
    if action == "list" and namespace is not None:
        assert not authorization.listed(Asker(role), namespace)


@pytest.mark.parametrize("action", ["admin", "monitor"])
def test_admin_has_monitor_in_it(action: str) -> None:
    authorization = made(rules=[{"roles": ["ops"], "namespaces": ["acme/*"], "actions": ["admin"]}])
    assert authorization.decide("ops", action, "acme/shop").rule == "rule 1: ops may admin in acme/*"
    assert not authorization.decide("ops", action, "other/shop").allowed
    authorization.check_somewhere(Asker("ops"), action)


def test_nobody_without_a_role_is_allowed_by_a_rule_for_all() -> None:
    everybody = made(rules=[{"roles": ["*"], "namespaces": ["*"], "actions": ["*"]}])
    assert everybody.decide("anybody", "list", "t/n").allowed
    assert not everybody.decide(None, "list", "t/n").allowed
    assert not everybody.decide("", "list", "t/n").allowed


@pytest.mark.parametrize(
    ("table", "authentication", "on"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"mode": "rules"}, False, True),
        ({"mode": "allow"}, False, False),
        ({"mode": "allow", "rules": RULES}, False, False),
        ({"rules": RULES}, False, True),
        ({"super_roles": ["admin"]}, False, True),
    ],
)
def test_where_there_are_rules(table: dict[str, Any], authentication: bool, on: bool) -> None:
    settings = AuthorizationSettings.model_validate(table)
    authorization = Authorization(settings, authentication=authentication)
    assert authorization.on is on
    assert authorization.listed(Asker(), "t/n") is not on
    assert authorization.decide(None, "admin", None).allowed is not on
    if on:
        with pytest.raises(ListingFailed, match="without a role has no right to admin in any namespace"):
            authorization.check_somewhere(Asker(), "admin")
    else:
        authorization.check_somewhere(Asker(), "admin")
    assert not authorization.decide("b", "list", "t/n").allowed or not on


def test_everybody_is_not_allowed_everything_after_having_said_who_he_is() -> None:
    with pytest.raises(AllowsEverybody, match="mode is 'allow', and there is authentication"):
        made(mode="allow")


@pytest.mark.parametrize(
    ("role", "original", "denied"),
    [
        ("proxy", "team-a", None),
        ("proxy", "nobody", "nobody"),
        ("nobody", "team-a", "nobody"),
        ("proxy", "", "A client without a role"),
        ("admin", "nobody", "nobody"),
        ("proxy", "admin", None),
    ],
)
def test_a_proxy_and_whom_it_asks_for_must_both_be_allowed(
    role: str, original: str, denied: str | None
) -> None:
    authorization, asker = made(), Asker(role, original)
    assert authorization.listed(asker, "acme/shop") is (denied is None)
    access = Access("list", NamespaceName("acme", "shop"), None, asker)
    if denied is None:
        authorization.check(access)
        return
    with pytest.raises(ListingFailed, match=denied) as caught:
        authorization.check(access)
    assert caught.value.code is ServerError.AuthorizationError


@pytest.mark.parametrize("action", ACTIONS)
def test_a_denial_names_the_actions_of_which_one_is_needed(action: str) -> None:
    access = Access(action, NamespaceName("other", "ns"), None, Asker("team-a"))
    with pytest.raises(ListingFailed) as caught:
        made().check(access)
    assert caught.value.cause is Cause.DENIED
    assert caught.value.reason == "denied"
    words = " or ".join(RULES_OF[action])
    assert caught.value.message == f"Role 'team-a' has no right to {words} in namespace other/ns"


@pytest.mark.parametrize("action", ["describe", "schema"])
@pytest.mark.parametrize("rule", ["list", "lookup", "monitor", "admin"])
def test_list_or_lookup_shows_what_is_known_of_a_topic(action: str, rule: str) -> None:
    authorization = made(rules=[{"roles": ["a", "b"], "namespaces": ["*"], "actions": [rule]}])
    access = Access(action, NamespaceName("t", "n"), None, Asker("a", "b"))
    if rule in {"list", "lookup"}:
        authorization.check(access)
        return
    with pytest.raises(ListingFailed, match="no right to list or lookup"):
        authorization.check(access)


def test_a_denial_quotes_a_role() -> None:
    with pytest.raises(ListingFailed) as caught:
        made().check_action(Asker("\x1b[1m" + "x" * 500), "admin", None)
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 300
    assert caught.value.message.endswith(" has no right to admin in all namespaces")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["admin", "team-a", "team-b", "proxy", None, "", "x"]),
            st.sampled_from([None, "team-a", "x", ""]),
            st.sampled_from(["acme/shop", "shared/a-1", "shared/b", "acme", "", "acme/a/b"]),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_a_kept_verdict_is_what_the_rules_say(askers: list[tuple[str | None, str | None, str]]) -> None:
    authorization = made()
    for role, original, namespace in askers:
        fresh = all(each.allowed for each in made().decisions(Asker(role, original), "list", namespace))
        assert authorization.listed(Asker(role, original), namespace) is fresh


def test_what_is_kept_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.access.authorization._VERDICTS", 10)
    monkeypatch.setattr("broker_core.access.authorization._ROLES", 10)
    authorization = made()
    for number in range(100):
        assert authorization.listed(Asker(f"team-{number}"), f"acme/{number}")
        assert not authorization.listed(Asker(f"team-{number}", "x" * 5000), "acme/n")
        assert not authorization.listed(Asker("team-1"), "acme/" + "n" * 5000)
    assert len(authorization._verdicts) <= 10
    assert len(authorization._rules_of) <= 10
    assert max(len(text or "") for key in authorization._verdicts for text in key) < 1100


@pytest.mark.parametrize(
    ("role", "original", "somewhere"),
    [
        ("team-a", None, True),
        ("team-b", None, False),
        ("admin", None, True),
        ("admin", "team-b", False),
        ("admin", "team-a", True),
        (None, None, False),
    ],
)
def test_an_action_that_is_allowed_somewhere(role: str | None, original: str | None, somewhere: bool) -> None:
    if somewhere:
        made().check_somewhere(Asker(role, original), "admin")
    else:
        with pytest.raises(ListingFailed, match="no right to admin in any namespace"):
            made().check_somewhere(Asker(role, original), "admin")


def ruled(*rules: tuple[str, str, list[str] | None]) -> Authorization:
    """Rules of the role ``a`` in all namespaces: effect, actions, topics."""
    table = [
        {"roles": ["a"], "namespaces": ["*"], "effect": effect, "actions": actions.split()}
        | ({} if topics is None else {"topics": topics})
        for effect, actions, topics in rules
    ]
    return made(rules=table)


@pytest.mark.parametrize("turned", [False, True])
def test_a_denial_wins_whatever_the_order(turned: bool) -> None:
    rules: list[tuple[str, str, list[str] | None]] = [
        ("allow", "list lookup", ["orders-*"]),
        ("deny", "list", ["*-secret"]),
    ]
    authorization = ruled(*(rules[::-1] if turned else rules))
    assert authorization.decide("a", "list", "t/n", "orders-1").allowed
    denied = authorization.decide("a", "list", "t/n", "orders-secret")
    assert (denied.allowed, denied.rule[7:]) == (False, " a may not list in * with topics *-secret")
    assert authorization.decide("a", "lookup", "t/n", "orders-secret").allowed
    assert not authorization.decide("a", "lookup", "t/n", "bills").allowed
    topics = authorization.filter(Asker("a"), "t/n")
    assert topics is not None
    assert [topics.shows(name) for name in ("orders-1", "orders-secret", "bills")] == [True, False, False]
    assert authorization.filter(Asker("admin"), "t/n") is None
    with pytest.raises(ListingFailed, match="Role 'b' has no right to list in namespace t/n"):
        authorization.filter(Asker("b"), "t/n")


@pytest.mark.parametrize(
    ("rules", "action", "said"),
    [
        (
            [("allow", "list", None), ("deny", "*", ["x"])],
            "list",
            "rule 1: a may list in *; rule 2 takes topics away",
        ),
        (
            [("deny", "list", ["x"]), ("allow", "list", None), ("deny", "list", ["y"])],
            "list",
            "rule 2: a may list in *; rules 1, 3 take topics away",
        ),
        ([("allow", "list", None), ("deny", "*", ["x"])], "lookup", "no rule allows it"),
        ([("deny", "*", None)], "lookup", "rule 1: a may not * in *"),
        (
            [("deny", "list", ["x"]), ("allow", "list", None), ("deny", "list", None)],
            "list",
            "rule 3: a may not list in *",
        ),
        (
            [("allow", "list", ["x"]), ("deny", "list", ["x"])],
            "list",
            "rule 2: a may not list in * with topics x",
        ),
    ],
)
def test_what_decides_about_a_namespace(rules: Any, action: str, said: str) -> None:
    assert ruled(*rules).decide("a", action, "t/n").rule == said


@pytest.mark.parametrize(
    "rules",
    [
        [("allow", "list", None), ("deny", "list", None)],
        [("allow", "list", None), ("deny", "*", ["*"])],
        [("allow", "list", ["a*"]), ("deny", "list", ["*"])],
        [("allow", "list", ["orders-?", "x"]), ("deny", "list", ["orders-*", "?"])],
        [("deny", "list", ["x"])],
    ],
)
def test_where_no_topic_can_be_allowed_it_is_a_denial(rules: Any) -> None:
    authorization = ruled(*rules)
    assert authorization.listed(Asker("a"), "t/n") is False
    with pytest.raises(ListingFailed, match="no right to list in namespace t/n"):
        authorization.check(Access("list", NamespaceName("t", "n"), None, Asker("a")))
    assert authorization.listed(Asker("admin"), "t/n") is True


def test_a_namespace_as_a_whole_is_changed_by_the_right_to_all_of_its_topics() -> None:
    access = Access("admin", NamespaceName("t", "n"), None, Asker("a"))
    some = ruled(("allow", "admin", None), ("deny", "admin", ["x"]))
    some.check(access, some=True)
    assert some.narrows(Asker("a"), "admin", "t/n")
    with pytest.raises(ListingFailed, match="no right to admin all topics of namespace t/n"):
        some.check(access)
    every = ruled(("allow", "admin", ["*"]))
    every.check(access)
    assert not every.narrows(Asker("a"), "admin", "t/n")


def test_topics_say_nothing_of_monitor() -> None:
    assert not ruled(("allow", "*", ["x"])).decide("a", "monitor", None).allowed
    authorization = ruled(("allow", "*", None), ("deny", "*", ["x"]))
    assert authorization.decide("a", "monitor", None).allowed
    authorization.check_somewhere(Asker("a"), "monitor")
    denied = ruled(("allow", "admin", None), ("deny", "monitor", None))
    assert not denied.decide("a", "monitor", "t/n").allowed
    assert denied.decide("a", "admin", "t/n").allowed
    with pytest.raises(ListingFailed, match="any namespace"):
        denied.check_somewhere(Asker("a"), "monitor")


def test_a_partition_is_of_its_topic_and_a_denial_names_the_topic() -> None:
    authorization = ruled(("allow", "list", ["orders"]))
    for name, allowed in {"orders": True, "orders-partition-3": True, "bills-partition-1": False}.items():
        access = Access(
            "list", NamespaceName("t", "n"), TopicName.parse(f"persistent://t/n/{name}"), Asker("a")
        )
        if allowed:
            authorization.check(access)
            continue
        with pytest.raises(ListingFailed) as caught:
            authorization.check(access)
        assert caught.value.message == "Role 'a' has no right to list persistent://t/n/bills"


def test_rules_in_a_thousand_are_compiled_once_for_what_they_are_about() -> None:
    authorization = ruled(*(("allow", "list", [f"team-{number}-*"]) for number in range(1000)))
    first = authorization._scope("a", "list", "t/0")
    assert authorization._scope("a", "list", "t/1") is first
    assert first.has("team-999-x")
    assert not first.has("team-1000")


def test_all_namespaces_are_all_of_their_topics() -> None:
    authorization = ruled(("allow", "admin", ["a*"]))
    assert not authorization.decide("a", "admin", None).allowed
    assert authorization.decide("a", "admin", "t/n").allowed
    with pytest.raises(ListingFailed, match="no right to admin in all namespaces"):
        authorization.check_action(Asker("a"), "admin", None)


def test_super_roles_alone_whether_or_not_there_are_rules() -> None:
    for authorization in (made(), made(mode="allow", authentication=False)):
        authorization.check_super(Asker(role="admin"))
        authorization.check_super(Asker(transport=OPERATOR))
        for asker in (
            Asker(role="prometheus"),
            Asker(),
            Asker(role="admin", original_principal="team-a"),
            Asker(role="team-a", original_principal="admin"),
        ):
            with pytest.raises(ListingFailed) as denied:
                authorization.check_super(asker)
            assert denied.value.cause is Cause.DENIED


def test_the_rules_about_a_topic_are_those_of_all_roles_and_actions() -> None:
    hidden = {
        "roles": ["*"],
        "namespaces": ["acme/shop"],
        "actions": ["list"],
        "effect": "deny",
        "topics": ["*-x"],
    }
    rules = made(rules=[*RULES[:2], hidden])
    assert [each.partition(":")[0] for each in rules.rules_about("acme/shop", "orders")] == [
        "rule 1",
        "rule 2",
    ]
    assert rules.rules_about("acme/shop", "a-x")[-1] == "rule 3: * may not list in acme/shop with topics *-x"
    assert rules.rules_about("shared/a-1", "orders") == ["rule 2: prometheus may monitor in *"]
    assert made(authentication=False, mode="allow").rules_about("acme/shop", "orders") == []
