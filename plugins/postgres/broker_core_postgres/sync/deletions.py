"""How much a mirror may delete without being told: the wrong cluster, or one that lost its topics, empties nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker_core_postgres.filling_failed import FillingFailed
from broker_core_postgres.merge import Counts

__all__ = ["Deletions", "MassDeletion"]

_ALWAYS: Final = 100  # listed names
_SHARE: Final = 0.1
_SMALL: Final = 10  # a namespace of so few names may lose all of them


class MassDeletion(FillingFailed):
    """More would be deleted than was allowed; nothing was written."""


@dataclass(frozen=True, slots=True)
class Deletions:
    """What is allowed. ``most``: listed names in one run; ``None``: 100, or a tenth of what there is if that is more,
    and no namespace of more than ten names loses all of them. ``mass``: any number.
    """

    most: int | None = None
    mass: bool = False

    def check(self, counts: Mapping[str, Counts]) -> None:
        """Raise :exc:`MassDeletion` where the counts, by namespace, are more than is allowed."""
        if self.mass:
            return
        removed = sum(count.removed for count in counts.values())
        there = sum(count.there for count in counts.values())
        most = max(_ALWAYS, int(there * _SHARE)) if self.most is None else self.most
        if removed > most:
            largest = max(counts, key=lambda namespace: counts[namespace].removed)
            raise MassDeletion(
                f"{removed} of {there} listed names would be deleted, more than {most} "
                f"(of {largest} alone {counts[largest].removed} of {counts[largest].there}): nothing was written; "
                f"`sync --dry-run` shows them, --max-deletions {removed} or --allow-mass-deletions allows it"
            )
        if self.most is None:
            emptied = [
                namespace for namespace, count in counts.items() if count.removed == count.there > _SMALL
            ]
            if emptied:
                more = f" and {len(emptied) - 1} other namespaces" if len(emptied) > 1 else ""
                raise MassDeletion(
                    f"{emptied[0]}{more} would lose all of {counts[emptied[0]].there} listed names: nothing "
                    f"was written; `sync --dry-run` shows them, --max-deletions {removed} or "
                    "--allow-mass-deletions allows it"
                )
