"""Warnings about rules: those that decide nothing, since other settings always decide first or they match no namespace
or topic, and patterns that are hardly meant as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from broker_core.access.authorization import rule_actions
from broker_core.errors import BrokerCoreError
from broker_core.listing import Listing, TopicFilter, TopicPatterns, filtered
from broker_core.names import NamespaceName, NamespacePatterns, RulePattern, covers_topics
from broker_core.settings import AuthorizationRule, AuthorizationSettings

__all__ = ["odd_topics", "unmatched_topics", "unused_rules"]

#: The end of a regular expression for any text, after a character that hardly any name has before a dot: not
#: ``orders.*``, but ``orders-.*`` and ``.*``.
_AS_REGEX: Final = re.compile(r"(?:^|_|[^\w*?])\.\*$")


def unused_rules(settings: AuthorizationSettings) -> Iterator[tuple[int, str]]:
    """The rules that can never decide, by their number from 1, and why."""
    for number, rule in enumerate(settings.rules, 1):
        earlier = enumerate(settings.rules[: number - 1], 1)
        before = next((place for place, wide in earlier if _covers(wide, rule)), None)
        if all(role in settings.super_roles for role in rule.roles):
            yield number, f"{', '.join(rule.roles)} may do everything already (authorization.super_roles)"
        elif before is not None:
            yield number, f"rule {before} {'allows' if rule.effect == 'allow' else 'denies'} all of it"
        elif rule.effect == "allow" and (denying := _denying(settings, rule)) is not None:
            yield number, f"rule {denying} denies all of it"
        elif not any(_names_some(namespace) for namespace in rule.namespaces):
            yield number, f"no namespace can be called {', '.join(rule.namespaces)}"


def unmatched_topics(
    settings: AuthorizationSettings, listings: Sequence[Listing]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The rules that deny by patterns which match no topic of their namespaces, by number, with these patterns.

    A rule whose namespaces have no topic yet is left out.
    """
    nothing = TopicPatterns(())
    for number, rule in enumerate(settings.rules, 1):
        if rule.effect == "allow" or rule.topics is None:
            continue
        namespaces = NamespacePatterns(rule.namespaces)
        topics = [
            each.all() for each in listings if len(each.all()) and namespaces.matches(str(each.namespace))
        ]
        alone = [(text, TopicFilter([(TopicPatterns([text]), nothing)])) for text in rule.topics]
        unmatched = tuple(text for text, one in alone if not any(len(filtered(each, one)) for each in topics))
        if topics and unmatched:
            yield number, unmatched


def odd_topics(settings: AuthorizationSettings) -> Iterator[tuple[int, str]]:
    """The rules with patterns of topics that are valid but hardly meant as they are, by number, and why: a rule that
    denies by one denies nothing.
    """
    for number, rule in enumerate(settings.rules, 1):
        for topic in rule.topics or ():
            if _AS_REGEX.search(topic):
                why = "`*` is any text, and `.` is a dot"
            elif topic != topic.strip():
                why = "`*` is any text, and white space is a part of a name"
            else:
                continue
            yield number, f"{topic!r} matches as it stands: {why}"


def _denying(settings: AuthorizationSettings, rule: AuthorizationRule) -> int | None:
    """The number of a rule that denies all that another one allows."""
    as_denial = rule.model_copy(update={"effect": "deny"})
    return next(
        (
            number
            for number, wide in enumerate(settings.rules, 1)
            if _covers(wide, as_denial, rule_actions(rule))
        ),
        None,
    )


def _covers(
    wide: AuthorizationRule, narrow: AuthorizationRule, actions: frozenset[str] | None = None
) -> bool:
    """Whether a rule covers all that a narrow one says (only for ``actions``, if given)."""
    return (
        wide.effect == narrow.effect
        and all(covers_topics(wide.topics or "*", topic) for topic in narrow.topics or "*")
        and all(any(RulePattern(one).covers(role) for one in wide.roles) for role in narrow.roles)
        and all(
            any(_covers_namespace(one, namespace) for one in wide.namespaces)
            for namespace in narrow.namespaces
        )
        and (rule_actions(narrow) if actions is None else actions) <= rule_actions(wide)
    )


def _covers_namespace(wide: str, narrow: str) -> bool:
    if wide in ("*", "*/*") or narrow == "*":
        return wide in ("*", "*/*")
    pairs = zip(wide.split("/"), narrow.split("/"), strict=True)
    return all(RulePattern(part).covers(other) for part, other in pairs)


def _names_some(namespace: str) -> bool:
    """Whether a pattern matches the name of some namespace: with letters for its ``*`` it must be one."""
    try:
        NamespaceName.parse("a/a" if namespace == "*" else namespace.replace("*", "a"))
    except BrokerCoreError:
        return False
    return True
