"""Counts the listed names that roles lose by a change of the rules: clients that see a topic vanish may unsubscribe."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator
from itertools import islice, product
from typing import Final, NamedTuple

from broker_core.access.asker import Asker
from broker_core.access.authorization import Authorization
from broker_core.listing import Listing, Selection, filtered
from broker_core.names import RulePattern
from broker_core.settings import AuthorizationSettings, Settings

__all__ = ["MOST_PAIRS", "LostNames", "names_elsewhere", "names_lost", "without_topics"]

#: Pairs of patterns that overlap and are compared, and pairs that are looked at for an overlap.
MOST_PAIRS: Final = 1000
_MOST_LOOKED_AT: Final = 200_000


class LostNames(NamedTuple):
    """The number of names of a namespace that a role loses, ``of`` how many, and whether it may list none now."""

    names: int
    of: int
    denied: bool = False


def names_lost(
    old: Authorization, new: Authorization, listings: Iterable[Listing]
) -> tuple[dict[str, dict[str, LostNames]], bool]:
    """The lost names by role and namespace, and whether all pairs of patterns were compared.

    A pattern of roles stands for the roles that it alone matches. Roles that two patterns match have an entry if they
    lose something else. For any thread that alone uses ``old`` and ``new``.
    """
    listings = list(listings)
    of_rights: dict[Hashable, dict[str, LostNames]] = {}  # many roles have the same rights

    def lost_by(role: str) -> dict[str, LostNames]:
        key = old.key(role), new.key(role)
        if key not in of_rights:
            of_rights[key] = _lost(old, new, role, listings)
        return of_rights[key]

    lost = {role: found for role in sorted(old.roles | new.roles) if (found := lost_by(role))}
    # A role loses names that a rule for one pattern allows, and a rule for the other denies.
    patterns = [
        [(role, RulePattern(role)) for role in sorted(roles) if "*" in role]
        for roles in (old.roles, new.denied_roles)
    ]
    pairs = _overlaps(islice(product(*patterns), _MOST_LOOKED_AT), old.roles | new.roles)
    for one, other, role in islice(pairs, MOST_PAIRS):
        found = lost_by(role)
        if found and found not in (lost.get(one), lost.get(other)):
            lost[f"a role that matches {one} and {other}"] = found
    are_all = next(pairs, None) is None and len(patterns[0]) * len(patterns[1]) <= _MOST_LOOKED_AT
    return lost, are_all


def _lost(
    old: Authorization, new: Authorization, role: str, listings: Iterable[Listing]
) -> dict[str, LostNames]:
    lost = {}
    for listing in listings:
        seen = _seen(old, role, listing.all())
        if seen is None or not len(seen):
            continue
        still = _seen(new, role, seen)
        missing = len(seen) - (0 if still is None else len(still))
        if missing:
            lost[str(listing.namespace)] = LostNames(missing, len(seen), still is None)
    return lost


def _overlaps(
    pairs: Iterable[tuple[tuple[str, RulePattern], ...]], met: Container[str]
) -> Iterator[tuple[str, str, str]]:
    """Two patterns, and a text that both match, which is neither pattern nor in ``met``."""
    for (one, pattern), (other, denied) in pairs:
        both = pattern.overlap(denied)
        if both is not None and both not in met and not pattern.covers(other) and not denied.covers(one):
            yield one, other, both


def _seen(rules: Authorization, role: str, selection: Selection) -> Selection | None:
    """The names of a selection that a role sees; ``None`` if it may not list."""
    listed = rules.listed(Asker(role), str(selection.listing.namespace))
    if isinstance(listed, bool):
        return selection if listed else None
    return filtered(selection, listed)


def without_topics(settings: AuthorizationSettings) -> AuthorizationSettings:
    """The settings with allowing rules alone, each for all topics."""
    rules = [rule.model_copy(update={"topics": None}) for rule in settings.rules if rule.effect == "allow"]
    return settings.model_copy(update={"rules": tuple(rules)})


def names_elsewhere(settings: Settings, listers: Iterable[str]) -> str:
    """A text about the names in no catalogue, whose loss is not counted; empty if there are none.

    ``listers`` are the names of the plugins that list topics.
    """
    places = [f"plugin {name!r}" for name in listers]
    if settings.upstream is not None:
        places.append("the cluster behind the server")
    return ", ".join(f"not those of {place}" for place in places)
