"""Recent changes of a namespace, and whether they concern a request that was answered from an older listing.

A request with a pattern has the same answer before and after a change of topics that do not match it. Finding that out
takes some microseconds, moving a snapshot a hundred times as long. So such requests do not wait for the move, a
snapshot is moved once for several changes, and sent answers are sent again after changes that do not concern them.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from broker_core.catalog.store.log_rows import RecentRows
from broker_core.catalog.topic_record import properties_of
from broker_core.listing import Listing
from broker_core.names import Mode, NamespaceName, partitioned_local_name
from broker_core.patterns import TopicsPattern, may_match
from broker_core.snapshots import CachedSnapshot, Snapshot, SnapshotCache

__all__ = ["MOST_RECENT", "KeptSnapshot", "KeptSnapshots", "RecentChanges", "SnapshotKey", "without_topics"]

#: The most changed topics that are matched for each request.
MOST_RECENT: Final = 64


class RecentChanges:
    """The known changes since a snapshot, up to ``version``, which was the newest one at state ``seen``."""

    __slots__ = ("_changed", "_listings", "_prefix", "_property_keys", "_since", "seen", "version")

    def __init__(self, snapshot: Snapshot) -> None:
        self.version = snapshot.version
        #: The state of the file in which ``version`` is known to be the newest; -1: in none.
        self.seen = -1
        self._property_keys = snapshot.property_keys
        self._prefix = f"{snapshot.listing.namespace}/".encode()
        self._since = snapshot.version.number
        #: For each changed topic the number of the version, the text that patterns match, and whether its names
        #: changed.
        self._changed: deque[tuple[int, bytes, bool]] = deque()
        #: Listings, some of which may be freed, and their versions.
        self._listings: dict[weakref.ref[Listing], int] = {}
        self.listed_by(snapshot)

    def listed_by(self, snapshot: Snapshot) -> None:
        """Add a later snapshot of the same namespace."""
        self._listings = {ref: number for ref, number in self._listings.items() if number >= self._since}
        self._listings[weakref.ref(snapshot.listing)] = snapshot.version.number

    def follow(self, recent: RecentRows, seen: int) -> None:
        """Add the changes since ``version``, as of a state of the file."""
        for number, _, base, before, after, had, has in recent.rows:
            lists_others = before != after
            if lists_others or self._changes_values(had, has):
                self._changed += ((number, form, lists_others) for form in self._forms_of(base))
        while len(self._changed) > MOST_RECENT:
            self._since = self._changed.popleft()[0]
        self.version, self.seen = recent.version, seen

    def _changes_values(self, had: str | None, has: str | None) -> bool:
        if had == has:
            return False
        before, after = properties_of(had), properties_of(has)
        return any(before.get(key) != after.get(key) for key in self._property_keys)

    def _forms_of(self, base: str) -> Iterable[bytes]:
        """The texts of a topic's names for patterns: its own name for partitions, without any suffix for itself."""
        return {self._prefix + name.encode() for name in (base, partitioned_local_name(base))}

    def version_of(self, listing: weakref.ref[Listing]) -> int | None:
        """The number of the version of a listing, while the changes since are known."""
        return self._listings.get(listing)

    def concern(self, pattern: TopicsPattern, since: int, *, by_properties: bool = False) -> bool:
        """Whether the topics that match ``pattern`` may differ from those at version number ``since``.

        With ``by_properties`` also the properties of matching topics count. ``True`` is always safe, and costs only
        time.
        """
        if since < self._since:
            return True
        forms = []
        for number, form, lists_others in reversed(self._changed):
            if number <= since:
                break
            if lists_others or by_properties:
                forms.append(form)
        return may_match(pattern, forms)


#: The key of a kept snapshot of a catalogue.
SnapshotKey: TypeAlias = tuple[NamespaceName, Mode]
KeptSnapshot: TypeAlias = CachedSnapshot[RecentChanges]
KeptSnapshots: TypeAlias = SnapshotCache[NamespaceName, RecentChanges]


@lru_cache(maxsize=256)
def without_topics(catalog_id: str, namespace: NamespaceName, mode: Mode) -> KeptSnapshot:
    """The empty snapshot of a namespace that never had a topic: brokers list it as empty too."""
    return KeptSnapshot(Snapshot.of_nothing(catalog_id, namespace, mode), seen=0)
