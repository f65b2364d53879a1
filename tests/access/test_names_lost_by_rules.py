from __future__ import annotations

from typing import Any

from broker_core.access.authorization import Authorization
from broker_core.access.names_lost_by_rules import MOST_PAIRS, names_lost, without_topics
from broker_core.listing.listing import Listing
from broker_core.names import Mode, NamespaceName
from broker_core.settings import AuthorizationSettings

LISTINGS = [
    Listing.from_names(
        NamespaceName("acme", name),
        Mode.PERSISTENT,
        [f"persistent://acme/{name}/{team}-{number}" for team in "ab" for number in range(10)],
    )
    for name in ("shop", "empty", "other")
]


def made(*rules: dict[str, Any]) -> AuthorizationSettings:
    every = [{"namespaces": ["acme/shop", "acme/other"], "actions": ["list"]} | each for each in rules]
    return AuthorizationSettings.model_validate({"super_roles": ["ops"], "rules": every})


def test_what_each_role_does_not_see_any_more() -> None:
    old = Authorization(made({"roles": ["team-*"]}, {"roles": ["ops"]}, {"roles": ["x"], "topics": ["a-*"]}))
    new = Authorization(
        made(
            {"roles": ["team-*"], "namespaces": ["acme/shop"]},
            {"roles": ["team-*"], "effect": "deny", "topics": ["a-*", "b-1"]},
            {"roles": ["x"], "topics": ["a-1", "b-*"]},
        )
    )
    assert names_lost(old, new, LISTINGS) == (
        {
            "team-*": {"acme/shop": (11, 20, False), "acme/other": (20, 20, True)},
            "x": {"acme/shop": (9, 10, False), "acme/other": (9, 10, False)},
        },
        True,
    )
    assert names_lost(new, new, LISTINGS) == ({}, True)


def test_what_roles_lose_that_two_patterns_match() -> None:
    allowed = [{"roles": ["team-*"]}, {"roles": ["x*y"]}]
    denied = {"roles": ["*-ext", "z*", "team-a*"], "effect": "deny", "topics": ["a-1"]}
    old, new = Authorization(made(*allowed)), Authorization(made(*allowed, denied))
    one = {"acme/shop": (1, 20, False), "acme/other": (1, 20, False)}
    # `x*y` and `*-ext` have no text in common, and `team-a*` is one that is tried as it stands.
    assert names_lost(old, new, LISTINGS) == (
        {"team-a*": one, "a role that matches team-* and *-ext": one},
        True,
    )


def test_what_a_former_super_role_loses() -> None:
    old, new = (
        Authorization(AuthorizationSettings(mode="rules", super_roles=roles)) for roles in (("boss",), ())
    )
    lost = {"acme/shop": (20, 20, True), "acme/empty": (20, 20, True), "acme/other": (20, 20, True)}
    assert names_lost(old, new, LISTINGS) == ({"boss": lost}, True)


def test_pairs_of_patterns_that_are_too_many_are_left_out() -> None:
    roles = [f"{number}-*" for number in range(40)]
    allowed = {"roles": roles}
    denied = {"roles": [f"*-{number}" for number in range(40)], "effect": "deny", "topics": ["a-1"]}
    lost, are_all = names_lost(
        Authorization(made(allowed)), Authorization(made(allowed, denied)), LISTINGS[:1]
    )
    assert (len(lost), are_all) == (MOST_PAIRS, False)


def test_the_same_rules_about_all_topics() -> None:
    table = made({"roles": ["a"], "topics": ["x"]}, {"roles": ["a"], "effect": "deny", "topics": ["y"]})
    (rule,) = without_topics(table).rules
    assert (rule.topics, rule.effect, rule.roles) == (None, "allow", ("a",))


def test_pairs_of_patterns_that_are_not_even_looked_at_are_said() -> None:
    allowed = {"roles": [f"a{number}-*" for number in range(500)]}
    denied = {"roles": [f"b{number}-*" for number in range(500)], "effect": "deny", "topics": ["a-1"]}
    rules = Authorization(made(allowed)), Authorization(made(allowed, denied))
    assert names_lost(*rules, LISTINGS[:1]) == ({}, False)
