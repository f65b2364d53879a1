"""Authorization by the rules of the settings: which role may do which action in which namespace, with which topics.

An action that no super role and no rule allows is denied, and so is one that a rule denies, whatever other rules allow.
If a proxy asks for a principal, both must be allowed. A decision depends on the settings alone, not on what exists: a
denial reads the same for an existing namespace and for any other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, ParamSpec, get_args

from broker_core.access.asker import OPERATOR, Access, Asker
from broker_core.errors import BrokerCoreError, Cause, ListingFailed
from broker_core.listing import TopicFilter, TopicPatterns
from broker_core.names import MAX_NAMESPACE, NamespacePatterns, RulePattern, TopicName, covers_topics
from broker_core.redaction import quoted
from broker_core.settings import AuthorizationRule, AuthorizationSettings, RuleAction

__all__ = [
    "RULES_OF",
    "RULE_ACTIONS",
    "AllowsEverybody",
    "Authorization",
    "Decision",
    "rule_actions",
    "rule_text",
]

P = ParamSpec("P")

#: The actions that a rule may allow.
RULE_ACTIONS: Final[tuple[str, ...]] = get_args(RuleAction)
#: For each action of gates (``access.ACTIONS``), and ``monitor``, the actions of rules of which any one is enough:
#: ``list`` sees topics and their details, ``lookup`` finds the server of a topic, ``admin`` changes, and ``monitor``
#: looks at the server, as ``admin`` does.
RULES_OF: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "list": ("list",),
        "describe": ("list", "lookup"),
        "lookup": ("lookup",),
        "schema": ("list", "lookup"),
        "put_schema": ("lookup",),
        "admin": ("admin",),
        "monitor": ("monitor",),
    }
)
#: The verdicts that are kept, and the roles whose rules are kept.
_VERDICTS: Final = 8192
_ROLES: Final = 1024
#: The longest role in characters: the principal of a proxy is text that the proxy sends.
_LONGEST_ROLE: Final = 1024


class AllowsEverybody(BrokerCoreError):
    """Refused settings: ``authorization.mode`` is ``allow``, so that authentication would have no effect."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether one role is allowed something, and by which ``rule``, as ``explain`` names it."""

    role: str | None
    allowed: bool
    rule: str


class Authorization:
    """The rules of one server. ``authentication`` says whether its clients have roles that were proven.

    ``on`` is false if everybody may do everything, which costs nothing. Immutable but for its kept verdicts; for one
    event loop. Raises
    :exc:`AllowsEverybody`.
    """

    def __init__(
        self, settings: AuthorizationSettings | None = None, *, authentication: bool = False
    ) -> None:
        settings = settings or AuthorizationSettings()
        if settings.mode == "allow" and authentication:
            raise AllowsEverybody(
                "authorization.mode is 'allow', and there is authentication: write rules, or leave the mode out"
            )
        ruled = bool(authentication or settings.super_roles or settings.rules)
        self.on = settings.mode == "rules" or (settings.mode == "auto" and ruled)
        self._super_roles = frozenset(settings.super_roles)
        self._rules = tuple(_Rule(number, rule) for number, rule in enumerate(settings.rules, 1))
        #: Whether a rule takes topics of a namespace from a role, and leaves others.
        self.has_topics = self.on and any(rule.denies or rule.topics is not None for rule in self._rules)
        denying = (rule for rule in settings.rules if rule.effect == "deny")
        #: The super roles, and the roles and patterns of roles that rules are about.
        self.roles = self._super_roles.union(*(rule.roles for rule in settings.rules))
        #: The roles of rules that deny.
        self.denied_roles = frozenset(role for rule in denying for role in rule.roles)
        self._rules_of: dict[str, tuple[_Rule, ...]] = {}
        self._scopes: dict[tuple[str, str, str | None], _Scope] = {}
        self._compiled: dict[tuple[_Rule, ...], _Scope] = {}
        self._verdicts: dict[tuple[str | None, str | None, str], TopicFilter | bool] = {}

    def decide(
        self, role: str | None, action: str, namespace: str | None, topic: str | None = None
    ) -> Decision:
        """Whether a role may do an action of the rules (:data:`RULE_ACTIONS`) in a namespace, with one of its topics
        (by its local name without partition), or else with some.

        A ``namespace`` of ``None`` is every namespace, for what belongs to the whole server.
        """
        if not self.on:
            return Decision(role, True, "authorization.mode = allow")
        if not role or len(role) > _LONGEST_ROLE:
            return Decision(role, False, "no role")
        if role in self._super_roles:
            return Decision(role, True, "authorization.super_roles")
        scope = self._scope(role, action, namespace)
        some = scope.whole if namespace is None else scope.some
        allowed = some if topic is None else scope.has(topic)
        return Decision(role, allowed, scope.why(topic, allowed=allowed))

    def key(self, role: str) -> Hashable:
        """A value that is equal for roles with the same rights: with the same rules, or all of them super roles."""
        return True if role in self._super_roles else self._of(role)

    def decisions(self, asker: Asker, action: str, namespace: str | None) -> list[Decision]:
        """The decision about each principal of an asker: its role, and the principal that it asks for, if any."""
        if asker.transport == OPERATOR:
            return [Decision(asker.role, True, "the operator's socket")]
        return [self.decide(role, action, namespace) for role in _roles(asker)]

    def check(self, access: Access, action: str | None = None, *, some: bool = False) -> None:
        """Raise :exc:`~broker_core.errors.ListingFailed`, with the cause ``DENIED``, unless ``access`` is allowed.

        ``action`` is the action of the rules, if it is not that of the gates. Changing a namespace as a whole takes the
        right to all of its topics; with ``some`` (each topic is asked about later), and to list, the right to some of
        them.
        """
        roles = self._bound(access.asker)
        if not roles:
            return
        action, namespace, topic = action or access.action, str(access.namespace), access.topic
        name = None if topic is None else topic.partitioned_name.local
        whole = topic is None and action == "admin" and not some
        for role in roles:
            if any(self._has(role, each, namespace, name, whole=whole) for each in RULES_OF[action]):
                continue
            where = f"in namespace {namespace}"
            if any(self._has(role, each, namespace) for each in RULES_OF[action]):
                where = (
                    f"all topics of namespace {namespace}" if topic is None else str(topic.partitioned_name)
                )
            raise _denied(role, action, where)

    def check_action(self, asker: Asker, action: str, namespace: str | None) -> None:
        """Raise what :meth:`check` raises, unless an action of the table of rights is allowed in a namespace.

        The table is :data:`RULES_OF`; ``None`` is the whole server.
        """
        for role in self._bound(asker):
            if not any(
                self._has(role, each, namespace, whole=namespace is None) for each in RULES_OF[action]
            ):
                where = "in all namespaces" if namespace is None else f"in namespace {namespace}"
                raise _denied(role, action, where)

    def rules_about(self, namespace: str, topic: str) -> list[str]:
        """Each rule about a topic (by its local name without partition), for whatever role and action, as a line."""
        return [rule.text for rule in self._rules if self.on and rule.covers(namespace, topic)]

    def listed(self, asker: Asker, namespace: str) -> TopicFilter | bool:
        """The topics of a namespace that an asker may list: all (``True``), none (``False``), or by a filter.

        Quick, since the last verdicts are kept.
        """
        if not self.on or asker.transport == OPERATOR:
            return True
        key = (asker.role, asker.original_principal, namespace)
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(namespace) > MAX_NAMESPACE or any(len(role or "") > _LONGEST_ROLE for role in key[:2]):
                return False  # the name of none, and too long to be kept
            verdict = self._listed_by(self._bound(asker), namespace)
            if len(self._verdicts) >= _VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = verdict
        return verdict

    def may_list(self, asker: Asker, topic: TopicName) -> bool:
        """Whether an asker may list a topic of this name."""
        listed = self.listed(asker, str(topic.namespace))
        return listed.shows(topic.local) if isinstance(listed, TopicFilter) else listed

    def listed_everywhere(self, asker: Asker) -> bool:
        """Whether an asker may list each namespace there may be, whole or in part."""
        return all(self._has(role, "list", None, whole=True) for role in self._bound(asker))

    def allows(self, asker: Asker, action: str, namespace: str | None) -> bool:
        """Whether :meth:`check_action` lets an action pass."""
        return _passes(self.check_action, asker, action, namespace)

    def filter(self, asker: Asker, namespace: str) -> TopicFilter | None:
        """The filter of the topics that an asker may list; ``None``: all.

        Raises what :meth:`check` raises if it may list none: the rules may have changed since :meth:`check`.
        """
        listed = self.listed(asker, namespace)
        if listed is False:
            denied = (role for role in self._bound(asker) if not self._has(role, "list", namespace))
            raise _denied(next(denied, None), "list", f"in namespace {namespace}")
        return listed if isinstance(listed, TopicFilter) else None

    def narrows(self, asker: Asker, action: str, namespace: str) -> bool:
        """Whether an asker may do an action of the rules with some topics of a namespace and not with others."""
        return any(
            self._has(role, action, namespace) and not self._has(role, action, namespace, whole=True)
            for role in self._bound(asker)
        )

    def check_super(self, asker: Asker) -> None:
        """Raise :exc:`~broker_core.errors.ListingFailed`, with the cause ``DENIED``, for an asker without a super
        role, whether or not there are rules.
        """
        for role in () if asker.transport == OPERATOR else _roles(asker):
            if role not in self._super_roles:
                holder = f"Role {quoted(role)}" if role else "A client without a role"
                raise ListingFailed(
                    f"{holder} is no super role (authorization.super_roles)",
                    cause=Cause.DENIED,
                    reason="denied",
                )

    def is_super(self, asker: Asker) -> bool:
        """Whether :meth:`check_super` lets an asker pass."""
        return _passes(self.check_super, asker)

    def allows_somewhere(self, asker: Asker, action: str) -> bool:
        """Whether :meth:`check_somewhere` lets an action pass."""
        return _passes(self.check_somewhere, asker, action)

    def check_somewhere(self, asker: Asker, action: str) -> None:
        """Raise what :meth:`check` raises, unless an action of the rules is allowed in some namespace."""
        for role in self._bound(asker):
            if not self._allowed_somewhere(role, action):
                raise _denied(role, action, "in any namespace")

    def _bound(self, asker: Asker) -> tuple[str | None, ...]:
        """The roles that must all have a right; none if the rules do not bind the asker."""
        return _roles(asker) if self.on and asker.transport != OPERATOR else ()

    def _allowed_somewhere(self, role: str | None, action: str) -> bool:
        if not role or len(role) > _LONGEST_ROLE:
            return False
        rules = [rule for rule in self._of(role) if action in rule.actions]
        return role in self._super_roles or (
            any(not rule.denies for rule in rules)
            and not any(rule.denies and rule.everywhere and rule.topics is None for rule in rules)
        )

    def _has(
        self,
        role: str | None,
        action: str,
        namespace: str | None,
        topic: str | None = None,
        *,
        whole: bool = False,
    ) -> bool:
        """Whether a role may do an action with a topic, with the ``whole`` of a namespace, or else with some topics."""
        if not role or len(role) > _LONGEST_ROLE:
            return False
        if role in self._super_roles:
            return True
        scope = self._scope(role, action, namespace)
        if topic is not None:
            return scope.has(topic)
        return scope.whole if whole else scope.some

    def _listed_by(self, roles: Iterable[str | None], namespace: str) -> TopicFilter | bool:
        pairs = []
        for role in roles:
            if not self._has(role, "list", namespace):
                return False
            if role is not None and not self._has(role, "list", namespace, whole=True):
                scope = self._scope(role, "list", namespace)
                pairs.append((None if scope.allows_rest else scope.allowed, scope.denied))
        return TopicFilter(pairs) if pairs else True

    def _scope(self, role: str, action: str, namespace: str | None) -> _Scope:
        """The rules about a role, an action and a namespace; equal sets of rules share one compiled form."""
        key = (role, action, namespace)
        scope = self._scopes.get(key)
        if scope is None:
            rules = tuple(rule for rule in self._of(role) if rule.is_about(action, namespace))
            if len(self._scopes) >= _VERDICTS or len(self._compiled) >= _ROLES:
                self._scopes.clear()
                self._compiled.clear()
            scope = self._compiled.get(rules) or _Scope(rules)
            if namespace is None or len(namespace) <= MAX_NAMESPACE:  # else it is the name of none
                self._scopes[key] = self._compiled[rules] = scope
        return scope

    def _of(self, role: str) -> tuple[_Rule, ...]:
        """The rules for a role, which are few even if there are rules for many roles."""
        found = self._rules_of.get(role)
        if found is None:
            found = tuple(rule for rule in self._rules if rule.is_for(role))
            if len(self._rules_of) >= _ROLES:
                self._rules_of.clear()
            self._rules_of[role] = found
        return found


class _Rule:
    """One rule, compiled; ``number`` counts from 1. ``topics`` are ``None`` if it is about all topics."""

    def __init__(self, number: int, rule: AuthorizationRule) -> None:
        self.number = number
        self.text = f"rule {number}: {rule_text(rule)}"
        self.denies = rule.effect == "deny"
        self.topics = None if rule.topics is None else TopicPatterns(rule.topics)
        if self.topics is not None and self.topics.everything:
            self.topics = None
        self._roles = tuple(RulePattern(role) for role in rule.roles)
        self.everywhere = "*" in rule.namespaces or "*/*" in rule.namespaces
        self._namespaces = NamespacePatterns(rule.namespaces)
        self.actions = rule_actions(rule)

    def is_for(self, role: str) -> bool:
        return any(pattern.matches(role) for pattern in self._roles)

    def covers(self, namespace: str, topic: str) -> bool:
        return (self.everywhere or self._namespaces.matches(namespace)) and (
            self.topics is None or self.topics.matches(topic)
        )

    def is_about(self, action: str, namespace: str | None) -> bool:
        """Whether a rule is about an action in a namespace; for all namespaces, whether it denies the action in any."""
        if action not in self.actions:
            return False
        if self.everywhere or namespace is None:
            return self.everywhere or self.denies
        return self._namespaces.matches(namespace)


class _Scope:
    """Some rules about one action and namespace, taken together: a topic is allowed by one, and denied by none."""

    def __init__(self, rules: tuple[_Rule, ...]) -> None:
        self._rules = rules
        allowing = [rule for rule in rules if not rule.denies]
        denying = [rule for rule in rules if rule.denies]
        self.allowed = _together(allowing)
        self.denied = _together(denying)
        #: Whether a rule allows every topic that none denies.
        self.allows_rest = any(rule.topics is None for rule in allowing)
        self._denies_all = any(rule.topics is None for rule in denying)
        self.some = not self._denies_all and (
            self.allows_rest or any(not covers_topics(self.denied.texts, text) for text in self.allowed.texts)
        )
        self.whole = self.some and self.allows_rest and not self.denied

    def has(self, topic: str) -> bool:
        if not self.some or self.denied.matches(topic):
            return False
        return self.allows_rest or self.allowed.matches(topic)

    def why(self, topic: str | None, *, allowed: bool) -> str:
        """The rule that decides about a topic, or about some topics, and the numbers of those that deny some."""
        denying = [rule for rule in self._rules if rule.denies]
        if topic is not None:
            about = [rule for rule in self._rules if rule.topics is None or rule.topics.matches(topic)]
        elif allowed or len(denying) < len(self._rules):
            about = sorted(self._rules, key=lambda rule: rule.denies and rule.topics is not None)
        else:  # nothing is allowed, also of the topics that no rule denies
            about = [rule for rule in denying if rule.topics is None]
        text = next((rule.text for rule in about if rule.denies is not allowed), "no rule allows it")
        if topic is not None or not allowed or not denying:
            return text
        numbers = ", ".join(str(rule.number) for rule in denying)
        return (
            f"{text}; {f'rule {numbers} takes' if len(denying) == 1 else f'rules {numbers} take'} topics away"
        )


def _together(rules: Iterable[_Rule]) -> TopicPatterns:
    return TopicPatterns(text for rule in rules if rule.topics is not None for text in rule.topics.texts)


def _passes(check: Callable[P, None], *given: P.args, **named: P.kwargs) -> bool:
    """Whether a check raises no denial."""
    try:
        check(*given, **named)
    except ListingFailed:
        return False
    return True


def _roles(asker: Asker) -> tuple[str | None, ...]:
    """The roles that must all have a right: the asker's own, and the principal that it asks for, if any."""
    return (asker.role,) if asker.original_principal is None else (asker.role, asker.original_principal)


def rule_actions(rule: AuthorizationRule) -> frozenset[str]:
    """The actions that a rule is about, each by its name: an allowed ``admin`` includes ``monitor``.

    A rule about topics is never about ``monitor``.
    """
    actions = set(RULE_ACTIONS if "*" in rule.actions else rule.actions)
    if rule.topics is not None:
        return frozenset(actions - {"monitor"})
    return frozenset(actions | {"monitor"} if "admin" in actions and rule.effect == "allow" else actions)


def rule_text(rule: AuthorizationRule) -> str:
    """A rule in one line."""
    roles, actions, namespaces = map(", ".join, (rule.roles, rule.actions, rule.namespaces))
    word = "may" if rule.effect == "allow" else "may not"
    topics = "" if rule.topics is None else f" with topics {', '.join(rule.topics)}"
    return f"{roles} {word} {actions} in {namespaces}{topics}"


def _denied(role: str | None, action: str, where: str) -> ListingFailed:
    holder = f"Role {quoted(role)}" if role else "A client without a role"
    text = f"{holder} has no right to {' or '.join(RULES_OF[action])} {where}"
    return ListingFailed(text, cause=Cause.DENIED, reason="denied")
