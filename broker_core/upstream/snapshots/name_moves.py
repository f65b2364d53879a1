"""The difference of two listings of a cluster, as names that went and came."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from broker_core.change_log import CatalogVersion
from broker_core.listing import Listing, ListingChange, selection_difference
from broker_core.names import Mode, NamespaceName
from broker_core.snapshots import Snapshot
from broker_core.upstream.snapshots.store_contract import TopicUpdate

__all__ = ["NameMoves", "net_moves", "snapshot_of"]


@dataclass(frozen=True, slots=True)
class NameMoves:
    """Names that went and came (:class:`~broker_core.snapshots.SnapshotChanges`), all of one mode."""

    version: CatalogVersion
    removed: Sequence[str]
    added: Sequence[str]

    def count(self, mode: Mode = Mode.ALL) -> int:  # noqa: ARG002  # of one mode
        return len(self.removed) + len(self.added)

    def names(self, mode: Mode) -> Iterator[str]:  # noqa: ARG002
        return itertools.chain(self.removed, self.added)

    def changed(self, mode: Mode, property_keys: Sequence[str]) -> ListingChange:  # noqa: ARG002
        return ListingChange(self.removed, self.added)


def net_moves(version: CatalogVersion, updates: Sequence[TopicUpdate]) -> NameMoves | None:
    """The sum of some updates; ``None`` if they contradict each other."""
    before: dict[str, bool] = {}
    after: dict[str, bool] = {}
    for update in updates:
        for names, is_there in ((update.removed, False), (update.added, True)):
            for name in names:
                if after.get(name, not is_there) is is_there:
                    return None
                before.setdefault(name, not is_there)
                after[name] = is_there
    changed = [name for name, is_there in after.items() if before[name] is not is_there]
    return NameMoves(
        version,
        [name for name in changed if not after[name]],
        [name for name in changed if after[name]],
    )


def snapshot_of(
    namespace: NamespaceName,
    domain: Mode,
    version: CatalogVersion,
    old: Snapshot | None,
    names: Any,
    *,
    most: int,
) -> tuple[Snapshot, NameMoves | None]:
    """The snapshot of these names: the old one if they are equal, or with its chunks if few differ; and the moves to
    it, if they are known, and few or at most ``most``.
    """
    listing = Listing.from_names(namespace, domain, names)
    if old is None:
        return Snapshot(version, listing), None
    added, removed = selection_difference(listing.all(), old.listing.all())
    count = len(added) + len(removed)
    if not count:
        return old, None
    moves = None
    if count <= max(old.most_changes, most):
        moves = NameMoves(version, removed.names.to_pylist(), added.names.to_pylist())
    if moves is None or count > old.most_changes:
        return Snapshot(version, listing), moves
    return old.moved(moves), moves
