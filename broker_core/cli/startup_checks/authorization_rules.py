"""The rules of ``[authorization]``: what each allows, and which have no effect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_core.cli.startup_checks.enabled_plugins import loaded_each
from broker_core.counted import counted
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.access import Authorization, LostNames
    from broker_core.listing import Listing
    from broker_core.settings import AuthorizationRule, Settings

__all__ = ["authorization_checks", "names_lost_by_role", "names_lost_checks"]

#: Namespaces that are named for a role.
_SHOWN: Final = 5
_MORE: Final = (
    "more pairs of patterns of roles overlap than are compared ({:,}): roles that match others may lose more"
)


def authorization_checks(settings: Settings) -> Iterator[Check]:
    """A finding for each rule, with what it allows to its roles."""
    from broker_core.access import Authorization, rule_text, unused_rules, wide_settings

    table = settings.authorization
    authorization = Authorization(table, authentication=settings.authentication.is_on)
    warnings = list(wide_settings(settings))
    if not authorization.on:
        yield Check.ok("authorization", "everybody may do everything: there are no rules")
    elif "authorization" not in dict(warnings):
        super_roles = ", ".join(table.super_roles) or "nobody"
        yield Check.ok(
            "authorization", f"rules; {super_roles} may do everything, what no rule allows is denied"
        )
    for name, text in warnings:
        yield Check.warning(name, text)
    unused = dict(unused_rules(table))
    for number, rule in enumerate(table.rules, 1):
        name = f"authorization.rules.{number}"
        if not authorization.on:
            yield Check.warning(name, "it never applies: authorization.mode is 'allow'")
        elif number in unused:
            yield Check.warning(name, f"it never applies: {unused[number]}")
        else:
            yield Check.ok(name, f"{rule_text(rule)}{_changed(rule)}")


def names_lost_checks(settings: Settings) -> Iterator[Check]:
    """Findings about how many names rules about topics hide from each role, and about rules that deny none."""
    from broker_core.access import (
        MOST_PAIRS,
        Authorization,
        names_elsewhere,
        names_lost,
        unmatched_topics,
        without_topics,
    )
    from broker_core.errors import BrokerCoreError

    table, path = settings.authorization, settings.catalog.path
    rules = Authorization(table, authentication=settings.authentication.is_on)
    if not rules.has_topics:
        return
    if elsewhere := names_elsewhere(settings, _listers(settings)):
        yield Check.ok("authorization.topics", f"not all names that roles lose are counted: {elsewhere}")
    if settings.upstream is not None or not path.exists():
        return
    try:
        listings = asyncio.run(_listings(path))
        former = Authorization(without_topics(table), authentication=True)
        lost, are_all = names_lost(former, rules, listings)
        unmatched = list(unmatched_topics(table, listings))
    except BrokerCoreError as error:
        yield Check.warning("authorization.topics", f"the names that rules take away are unknown: {error}")
        return
    for role, namespaces in lost.items():
        # A client whose listing is denied gets an error, not a shorter listing.
        end = "" if all(each.denied for each in namespaces.values()) else ": some clients unsubscribe"
        yield Check.ok("authorization.topics", f"{role} does not see {_losses_text(namespaces)}{end}")
    if not are_all:
        yield Check.warning("authorization.topics", _MORE.format(MOST_PAIRS))
    for number, texts in unmatched:
        shown = ", ".join(map(repr, texts[:_SHOWN]))
        more = f" and {counted(len(texts) - _SHOWN, 'pattern')} more" if len(texts) > _SHOWN else ""
        yield Check.warning(
            f"authorization.rules.{number}.topics", f"it denies no topic of the catalogue by {shown}{more}"
        )


def _listers(settings: Settings) -> Iterator[str]:
    """The plugins that list topics, by name, without those that cannot be loaded: they have an error of their own."""
    for name, found in loaded_each(settings.plugins):
        if not isinstance(found, Exception) and found[name].lists:
            yield name
    if settings.kafka is not None and settings.kafka.upstream is not None:
        from broker_core.upstream.kafka import CLUSTER_PLUGIN

        yield CLUSTER_PLUGIN


def names_lost_by_role(
    old: Authorization, new: Authorization, path: Path
) -> tuple[dict[str, str], str | None]:
    """The roles that lose names of a catalogue by other rules, with the number in each namespace; and a note if not all
    could be compared.

    Raises :exc:`~broker_core.errors.BrokerCoreError` if the catalogue cannot be read.
    """
    from broker_core.access import MOST_PAIRS, names_lost

    lost, are_all = names_lost(old, new, asyncio.run(_listings(path)))
    note = None if are_all else _MORE.format(MOST_PAIRS)
    return {role: _losses_text(namespaces) for role, namespaces in lost.items()}, note


def _losses_text(lost: Mapping[str, LostNames]) -> str:
    """A text with the number of names that a role loses in each namespace."""
    shown = ", ".join(
        f"{each.names} of {each.of} in {namespace}{' (denied: AuthorizationError)' if each.denied else ''}"
        for namespace, each in islice(lost.items(), _SHOWN)
    )
    return f"{shown} and {counted(len(lost) - _SHOWN, 'namespace')} more" if len(lost) > _SHOWN else shown


async def _listings(path: Path) -> list[Listing]:
    """The listing of each namespace of a catalogue."""
    from broker_core.catalog import CatalogLister, SqliteCatalog
    from broker_core.listing import Listing
    from broker_core.memory import Permits
    from broker_core.names import Mode
    from broker_core.plugin_api import ListingRequest

    with SqliteCatalog(path, create=False) as catalog:
        lister = CatalogLister(catalog, Permits())
        try:
            found = [
                (await lister.list_topics(ListingRequest(namespace, Mode.ALL))).topics
                for namespace in catalog.namespaces()
            ]
        finally:
            lister.close()
    return [listing for listing in found if isinstance(listing, Listing)]


def _changed(rule: AuthorizationRule) -> str:
    """A note on what the actions of a rule allow that formerly needed `lookup`, or allow no longer."""
    actions = set(rule.actions)
    if rule.effect == "deny" or "*" in actions or not actions & {"list", "lookup", "admin"}:
        return ""
    if "lookup" in actions:
        return "" if "list" in actions else "; without list: lookup shows no configs and properties of topics"
    gained = []
    if "list" in actions:
        gained.append("list shows partitions, schemas and configs of topics too")
    if "admin" in actions:
        gained.append("admin deletes topics over Kafka too")
    return f"; without lookup: {', '.join(gained)}"
