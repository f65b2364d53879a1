"""One namespace in memory at one version: its listing, whose chunks have the values of the selecting properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from broker_core.change_log import CatalogVersion
from broker_core.concurrency import Steps, finished
from broker_core.listing import (
    Listing,
    ListingChange,
    ListingData,
    Selection,
    data_of,
    is_quick_to_select,
    listing_of,
    select_by_properties,
    selection_of,
    splicing,
)
from broker_core.names import Mode, NamespaceName, hash_order_bytes

__all__ = ["Snapshot", "SnapshotChanges"]

#: Further bytes of a moved snapshot that the one before did not have.
_MOVED: Final = 16 * 1024
#: Bytes that a name which came by a change is taken to need in all columns.
_MOVED_NAME: Final = 512
#: If more names than this changed, their chunks are not looked up.
_LOOKED_UP: Final = 64
#: A change takes as long as reading so many names.
_CHANGED_PART: Final = 8
_MANY: Final = 1000


class SnapshotChanges(Protocol):
    """The changes from one version of a namespace to another."""

    @property
    def version(self) -> CatalogVersion:
        """The version that they lead to."""

    def count(self, mode: Mode = Mode.ALL) -> int:
        """The number of changed names in this mode."""

    def names(self, mode: Mode) -> Iterator[str]:
        """The changed names in this mode."""

    def changed(self, mode: Mode, property_keys: Sequence[str]) -> ListingChange:
        """The changes to a listing of the first version, with the values of these properties."""


class Snapshot:
    """The topics of a namespace in one mode at one version, with the values of the selecting properties. Immutable."""

    __slots__ = ("listing", "property_keys", "version")

    def __init__(self, version: CatalogVersion, listing: Listing, property_keys: Sequence[str] = ()) -> None:
        self.version = version
        self.listing = listing
        #: The selecting properties: all chunks of the listing have values of these.
        self.property_keys = tuple(property_keys)

    @classmethod
    def of_nothing(
        cls, catalog_id: str, namespace: NamespaceName, mode: Mode, property_keys: Sequence[str] = ()
    ) -> Snapshot:
        """The snapshot of a namespace that never had a topic."""
        return cls(CatalogVersion(catalog_id, 0), listing_of(ListingData(namespace, mode, ())), property_keys)

    @property
    def nbytes(self) -> int:
        """Bytes of the snapshot, with the room for what it remembers."""
        return self.listing.nbytes

    def in_mode(self, mode: Mode) -> Snapshot | None:
        """The snapshot in another mode, which lists a part of it; its chunks are shared. ``None`` for all other
        modes.
        """
        data = data_of(self.listing)
        if mode is data.mode:
            return self
        if data.mode is not Mode.ALL:
            return None
        own = [chunk for chunk in data.chunks if mode.lists(chunk.domain)]
        return Snapshot(self.version, listing_of(ListingData(data.namespace, mode, own)), self.property_keys)

    def worth_moving(self, changes: SnapshotChanges) -> bool:
        """Whether :meth:`moved` is less work than reading anew."""
        return changes.count() <= self.most_changes

    @property
    def most_changes(self) -> int:
        """The most changed names with which :meth:`moved` is less work than reading anew; a change has at least one."""
        size = len(self.listing)
        # Of many changes, all would be in memory at once.
        return 50 + max(size // 50, min(size // _CHANGED_PART, _MANY))

    # -- selecting by properties

    @property
    def selecting_bytes(self) -> int:
        """The bytes that :meth:`select` may take until it has found the rows, and those of the rows."""
        data = data_of(self.listing)
        return 4 * data.size + 16 * max((chunk.size for chunk in data.chunks), default=0)

    def is_quick_to_select(self, pairs: Mapping[str, str]) -> bool:
        """Whether :meth:`select` takes well under a millisecond."""
        return is_quick_to_select(data_of(self.listing), pairs)

    def select(self, pairs: Mapping[str, str]) -> Selection:
        """The topics that have all of these properties (of selecting keys); any thread may ask."""
        return selection_of(self.listing, select_by_properties(data_of(self.listing), pairs))

    # -- changes

    def moved_bytes(self, changes: SnapshotChanges) -> int:
        """The approximate bytes that :meth:`moved` takes besides this snapshot's: rarely too few."""
        data = data_of(self.listing)
        count = changes.count(data.mode)
        if count <= _LOOKED_UP:
            keys = [hash_order_bytes(name.encode()) for name in changes.names(data.mode)]
            numbers = {data.chunk_of(key) for key in keys} if data.chunks else ()
            touched = sum(data.chunks[number].nbytes for number in numbers)
        else:
            touched = self.nbytes
        return touched + data.own_bytes + count * (_MOVED_NAME + 8 * len(self.property_keys)) + _MOVED

    def moved(self, changes: SnapshotChanges) -> Snapshot:
        """The snapshot after changes: chunks without a change are shared."""
        return finished(self.moving(changes))

    def moving(self, changes: SnapshotChanges) -> Steps[Snapshot]:
        """The steps of :meth:`moved`: one for each chunk, and one before, which is quick for a few names."""
        data = data_of(self.listing)
        changed = changes.changed(data.mode, self.property_keys)
        spliced = data
        if len(changed):
            spliced = yield from splicing(data, changed)
        listing = self.listing if spliced is data else listing_of(spliced)
        return Snapshot(changes.version, listing, self.property_keys)
