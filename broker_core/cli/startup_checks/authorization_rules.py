"""The rules of ``[authorization]``: what each allows, and those that decide nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker_core.plugin_api.check_findings import Check

if TYPE_CHECKING:
    from broker_core.settings import AuthorizationRule, Settings

__all__ = ["authorization_checks"]


def authorization_checks(settings: Settings) -> Iterator[Check]:
    """Who may do what, rule by rule."""
    from broker_core.access.authorization import Authorization, rule_text
    from broker_core.access.unused_rules import unused_rules
    from broker_core.access.wide_settings import wide_settings

    table = settings.authorization
    authorization = Authorization(table, authentication=settings.authentication.is_on)
    if not authorization.on:
        yield Check.ok("authorization", "everybody may do everything: there are no rules")
    elif not table.super_roles and not table.rules:
        yield Check.warning("authorization", "there is no rule and no super role, so everything is denied")
    else:
        super_roles = ", ".join(table.super_roles) or "nobody"
        yield Check.ok(
            "authorization", f"rules; {super_roles} may do everything, what no rule allows is denied"
        )
    for name, text in wide_settings(settings):
        yield Check.warning(name, text)
    unused = dict(unused_rules(table))
    for number, rule in enumerate(table.rules, 1):
        name = f"authorization.rules.{number}"
        if not authorization.on:
            yield Check.warning(name, "it never applies: authorization.mode is 'allow'")
        elif number in unused:
            yield Check.warning(name, f"it never applies: {unused[number]}")
        else:
            yield Check.ok(name, f"{rule_text(rule)}{_more(rule)}")


def _more(rule: AuthorizationRule) -> str:
    """What the actions of a rule have come to allow, which took `lookup` before."""
    actions = set(rule.actions)
    if actions & {"lookup", "*"} or not actions & {"list", "admin"}:
        return ""
    gained = []
    if "list" in actions:
        gained.append("list shows partitions, schemas and configs of topics too")
    if "admin" in actions:
        gained.append("admin deletes topics over Kafka too")
    return f"; without lookup: {', '.join(gained)}"
