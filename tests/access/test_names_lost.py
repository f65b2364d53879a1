from __future__ import annotations

from typing import Any

from broker_core.access.authorization import Authorization
from broker_core.access.names_lost import names_lost, without_topics
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
    assert names_lost(old, new, LISTINGS) == {
        "team-*": {"acme/shop": (11, 20, False), "acme/other": (20, 20, True)},
        "x": {"acme/shop": (9, 10, False), "acme/other": (9, 10, False)},
    }
    assert names_lost(new, new, LISTINGS) == {}


def test_the_same_rules_about_all_topics() -> None:
    table = made({"roles": ["a"], "topics": ["x"]}, {"roles": ["a"], "effect": "deny", "topics": ["y"]})
    (rule,) = without_topics(table).rules
    assert (rule.topics, rule.effect, rule.roles) == (None, "allow", ("a",))
