"""Authorization by the rules of the settings: which role may do which action in which namespace.

What no super role and no rule allows is denied. Where a proxy asks for somebody, both must be allowed. A decision knows
the settings alone, and nothing of what exists: a denial reads the same for a namespace that is there and for any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker_core.access.access import Access
from broker_core.access.asker import OPERATOR, Asker
from broker_core.access.rights import RULES_OF
from broker_core.access.rule_patterns import RulePattern
from broker_core.errors import BrokerCoreError, Cause, ListingFailed
from broker_core.names.namespace_name import MAX_NAMESPACE
from broker_core.redaction.quoted import quoted
from broker_core.settings import AuthorizationRule, AuthorizationSettings

__all__ = [
    "RULE_ACTIONS",
    "AllowsEverybody",
    "Authorization",
    "Decision",
    "rule_actions",
    "rule_text",
]

#: What a rule may allow.
RULE_ACTIONS: Final = ("list", "lookup", "monitor", "admin")
#: The verdicts that are kept, and the roles whose rules are.
_VERDICTS: Final = 8192
_ROLES: Final = 1024
#: The longest role that anybody has, in characters: whom a proxy asks for is text that it sends.
_LONGEST_ROLE: Final = 1024


class AllowsEverybody(BrokerCoreError):
    """``authorization.mode`` is ``allow``, and clients authenticate: nobody would ask what for."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether one role is allowed something, and by what: ``rule`` is how ``explain`` names it."""

    role: str | None
    allowed: bool
    rule: str


class Authorization:
    """The rules of one server. ``authentication`` says whether its clients have roles that were proven.

    ``on`` is false where everybody may do everything, which costs nothing. For one event loop. Raises
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
        self._rules_of: dict[str, tuple[_Rule, ...]] = {}
        self._verdicts: dict[tuple[str | None, str | None, str], bool] = {}

    def decide(self, role: str | None, action: str, namespace: str | None) -> Decision:
        """Whether a role may do an action of the rules (:data:`RULE_ACTIONS`) in a namespace.

        ``None`` is every namespace: what belongs to the whole server.
        """
        if not self.on:
            return Decision(role, True, "authorization.mode = allow")
        if not role or len(role) > _LONGEST_ROLE:
            return Decision(role, False, "no role")
        if role in self._super_roles:
            return Decision(role, True, "authorization.super_roles")
        for rule in self._of(role):
            if rule.allows(action, namespace):
                return Decision(role, True, rule.text)
        return Decision(role, False, "no rule allows it")

    def decisions(self, asker: Asker, action: str, namespace: str | None) -> list[Decision]:
        """The decision about each principal of an asker: its role, and whom it asks for, if anybody."""
        if asker.transport == OPERATOR:
            return [Decision(asker.role, True, "the operator's socket")]
        found = [self.decide(asker.role, action, namespace)]
        if asker.original_principal is not None:
            found.append(self.decide(asker.original_principal, action, namespace))
        return found

    def check(self, access: Access, action: str | None = None) -> None:
        """Raise :exc:`~broker_core.errors.ListingFailed`, with the cause ``DENIED``, unless this is allowed.

        ``action`` is what the rules are asked in place of what gates are.
        """
        if self.on:
            self.check_action(access.asker, action or access.action, str(access.namespace))

    def check_action(self, asker: Asker, action: str, namespace: str | None) -> None:
        """The same for an action of the table (:data:`~broker_core.access.rights.RULES_OF`), also for all of the
        server."""
        any_of = RULES_OF[action]
        for principals in zip(*(self.decisions(asker, each, namespace) for each in any_of), strict=True):
            if not any(decision.allowed for decision in principals):
                where = "all namespaces" if namespace is None else f"namespace {namespace}"
                raise ListingFailed(
                    _denial(principals[0].role, " or ".join(any_of), where),
                    cause=Cause.DENIED,
                    reason="denied",
                )

    def allows_list(self, asker: Asker, namespace: str) -> bool:
        """Whether an asker may list a namespace; quick, since the last verdicts are kept."""
        if not self.on or asker.transport == OPERATOR:
            return True
        key = (asker.role, asker.original_principal, namespace)
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(namespace) > MAX_NAMESPACE or any(len(role or "") > _LONGEST_ROLE for role in key[:2]):
                return False  # the name of none, and too long to be kept
            verdict = all(decision.allowed for decision in self.decisions(asker, "list", namespace))
            if len(self._verdicts) >= _VERDICTS:
                self._verdicts.clear()
            self._verdicts[key] = verdict
        return verdict

    def check_somewhere(self, asker: Asker, action: str) -> None:
        """The same for an action of the rules in some namespace at least."""
        if not self.on or asker.transport == OPERATOR:
            return
        roles = [asker.role] if asker.original_principal is None else [asker.role, asker.original_principal]
        for role in roles:
            if not self._allowed_somewhere(role, action):
                raise ListingFailed(
                    _denial(role, action, "any namespace"), cause=Cause.DENIED, reason="denied"
                )

    def _allowed_somewhere(self, role: str | None, action: str) -> bool:
        if not role or len(role) > _LONGEST_ROLE:
            return False
        return role in self._super_roles or any(rule.has_action(action) for rule in self._of(role))

    def _of(self, role: str) -> tuple[_Rule, ...]:
        """The rules for a role, which are few where there are rules for many."""
        found = self._rules_of.get(role)
        if found is None:
            found = tuple(rule for rule in self._rules if rule.is_for(role))
            if len(self._rules_of) >= _ROLES:
                self._rules_of.clear()
            self._rules_of[role] = found
        return found


class _Rule:
    """One rule, compiled; ``number`` counts from 1."""

    def __init__(self, number: int, rule: AuthorizationRule) -> None:
        self.text = f"rule {number}: {rule_text(rule)}"
        self._roles = tuple(RulePattern(role) for role in rule.roles)
        self._everywhere = "*" in rule.namespaces or "*/*" in rule.namespaces
        self._namespaces = tuple(
            (RulePattern(tenant), RulePattern(name))
            for tenant, _, name in (pattern.partition("/") for pattern in rule.namespaces)
            if name
        )
        self._actions = rule_actions(rule)

    def is_for(self, role: str) -> bool:
        return any(pattern.matches(role) for pattern in self._roles)

    def has_action(self, action: str) -> bool:
        return action in self._actions

    def allows(self, action: str, namespace: str | None) -> bool:
        if action not in self._actions:
            return False
        if self._everywhere or namespace is None:
            return self._everywhere
        tenant, _, name = namespace.partition("/")
        return any(
            of_tenant.matches(tenant) and of_name.matches(name) for of_tenant, of_name in self._namespaces
        )


def rule_actions(rule: AuthorizationRule) -> frozenset[str]:
    """The actions that a rule allows, each by its name: ``admin`` has ``monitor`` in it."""
    if "*" in rule.actions:
        return frozenset(RULE_ACTIONS)
    return frozenset({*rule.actions, "monitor"} if "admin" in rule.actions else rule.actions)


def rule_text(rule: AuthorizationRule) -> str:
    """A rule in one line."""
    roles, actions, namespaces = map(", ".join, (rule.roles, rule.actions, rule.namespaces))
    return f"{roles} may {actions} in {namespaces}"


def _denial(role: str | None, action: str, where: str) -> str:
    who = f"Role {quoted(role)}" if role else "A client without a role"
    return f"{who} has no right to {action} in {where}"
