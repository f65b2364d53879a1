"""Answers of plugins that carry a version: built once, and taken again while the version is the same.

A plugin is asked every time; what is saved is checking, ordering and encoding the names it returns. A key holds all
that the plugin said its answers depend on (the principal too, unless it said otherwise), so nothing crosses principals.
Memory comes from the ``snapshots`` budget, of which the catalogue's snapshots keep at least a half, since many
different questions could take it all. The least used answer makes room, and what does not fit is not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from broker_core.listing import Listing
from broker_core.names import NamespaceName
from broker_core.permits import Permit, PermitBudget

__all__ = ["KeptAnswers"]


class KeptAnswers:
    """Listings by question, each with the version that it is for."""

    def __init__(self, budget: PermitBudget) -> None:
        self._budget = budget
        self._kept: OrderedDict[Hashable, tuple[str | int, Listing, int, Permit]] = OrderedDict()
        self._bytes = 0  # of all that is kept

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable, version: str | int) -> tuple[Listing, int] | None:
        """The listing for this question at this version, and how many names the plugin had returned."""
        entry = self._kept.get(key)
        if entry is None or entry[0] != version:
            return None
        self._kept.move_to_end(key)
        return entry[1], entry[2]

    def put(self, key: Hashable, version: str | int, listing: Listing, returned: int) -> bool:
        """Keep a listing in place of an older one, if there is room or the least used ones make some."""
        self._drop(key)
        size = listing.nbytes
        most = self._budget.maximum // 2 if self._budget.maximum else size + self._bytes
        if size > most:
            return False
        while self._bytes + size > most:
            self._drop(next(iter(self._kept)))
        permit = self._budget.try_acquire(size)
        while permit is None and self._kept:
            self._drop(next(iter(self._kept)))
            permit = self._budget.try_acquire(size)
        if permit is None:
            return False
        self._kept[key] = (version, listing, returned, permit)
        self._bytes += size
        return True

    def forget(self, namespace: NamespaceName) -> None:
        """Drop all answers about a namespace: its topics changed."""
        for key in [key for key, entry in self._kept.items() if entry[1].namespace == namespace]:
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        entry = self._kept.pop(key, None)
        if entry is not None:
            self._bytes -= entry[3].count
            entry[3].release()
