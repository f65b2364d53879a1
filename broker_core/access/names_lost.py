"""How many names of listings roles lose by a change of the rules: clients that see a topic vanish may unsubscribe."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker_core.access.asker import Asker
from broker_core.access.authorization import Authorization
from broker_core.listing.listing import Listing, Selection
from broker_core.listing.topic_filter import filtered
from broker_core.settings import AuthorizationSettings

__all__ = ["Lost", "names_lost", "without_topics"]


class Lost(NamedTuple):
    """Names of a namespace that a role does not see any more, ``of`` how many, and whether it may list none."""

    names: int
    of: int
    denied: bool = False


def names_lost(
    old: Authorization, new: Authorization, listings: Iterable[Listing]
) -> dict[str, dict[str, Lost]]:
    """What a role does not see any more, by role and namespace.

    A pattern of roles stands for those that it alone is about. For any thread that alone uses ``old`` and ``new``.
    """
    lost: dict[str, dict[str, Lost]] = {}
    for listing in listings:
        namespace = str(listing.namespace)
        for role in sorted(old.roles | new.roles):
            seen = _seen(old, role, listing.all())
            if seen is None or not len(seen):
                continue
            still = _seen(new, role, seen)
            missing = len(seen) - (0 if still is None else len(still))
            if missing:
                lost.setdefault(role, {})[namespace] = Lost(missing, len(seen), still is None)
    return lost


def _seen(rules: Authorization, role: str, selection: Selection) -> Selection | None:
    """What a role sees of a selection; ``None`` where it may not list."""
    listed = rules.listed(Asker(role), str(selection.listing.namespace))
    if isinstance(listed, bool):
        return selection if listed else None
    return filtered(selection, listed)


def without_topics(settings: AuthorizationSettings) -> AuthorizationSettings:
    """The rules that allow, each for all topics: what they are without those that deny."""
    rules = [rule.model_copy(update={"topics": None}) for rule in settings.rules if rule.effect == "allow"]
    return settings.model_copy(update={"rules": tuple(rules)})
