"""Stored files of live snapshots, with the listings and hashes of a cluster, for the next start.

A cluster has no history, so only the cluster itself knows whether a stored listing is current: it is asked with the
stored hash before anybody gets the topics.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from broker_core.change_log import CatalogVersion
from broker_core.listing import Listing, ListingData, data_of, listing_of
from broker_core.names import Mode
from broker_core.snapshots import (
    LEAST_TOPICS,
    CachedSnapshot,
    Snapshot,
    SnapshotManifest,
    SnapshotWriter,
    Stored,
    StoredSnapshots,
)
from broker_core.upstream.snapshots.snapshot_log import ViewOfNamespace

__all__ = ["DomainState", "ListingRun", "PartKey", "StoredParts"]

#: One domain of a place.
PartKey: TypeAlias = tuple[ViewOfNamespace, Mode]
#: The snapshot of a part in memory, and the cluster's hash of it.
_InMemory: TypeAlias = tuple[CachedSnapshot[None], str]

_DIGEST: Final = 16
_NEVER: Final = float("-inf")


@dataclass(slots=True)
class ListingRun:
    """One listing of the cluster; ``began`` is its start on the loop's clock: infinite until then."""

    began: float = float("inf")
    task: asyncio.Task[Snapshot] | None = None


@dataclass(slots=True, eq=False)
class DomainState:
    """The state of one domain of a place."""

    #: Whether there was a listing, in memory or not.
    is_listed: bool = False
    #: The beginning of the last listing that this was compared with.
    compared: float = _NEVER
    #: The store's own hash of it.
    known_hash: str | None = None
    last_began: float = _NEVER
    run: ListingRun | None = None
    requested_at: float = _NEVER
    #: A lock that is held while it is replaced or moved.
    moving: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: The hashes that it had since the listing that is under way began.
    passed: set[str | None] | None = None
    #: Whether an update of several names was taken in since then: hashes in between are not known.
    leapt: bool = False


class StoredParts:
    """The stored parts of one cluster (``cluster`` names it). Made and used on one event loop.

    ``in_memory`` gives the snapshot of a part now, ``keys`` all parts that have one.
    """

    def __init__(
        self,
        stored: StoredSnapshots,
        cluster: str,
        in_memory: Callable[[PartKey], _InMemory | None],
        keys: Callable[[], Iterable[PartKey]],
    ) -> None:
        self._stored = stored
        self._cluster = _digest(cluster)
        self._in_memory = in_memory
        self._keys = keys
        self._writer: SnapshotWriter[PartKey] = SnapshotWriter(stored, self._current, self._every)

    async def find(self, key: PartKey) -> SnapshotManifest | None:
        """The manifest of a stored part, if there is one. No topics are read yet."""
        (namespace, view), domain = key
        return await asyncio.to_thread(
            self._stored.find, namespace, domain, self._cluster, _digest(repr(view))
        )

    async def read(self, manifest: SnapshotManifest) -> Listing | None:
        """The topics that had the hash ``manifest.stamp`` at the cluster; ``None`` if they are not all there."""
        return await asyncio.to_thread(self._read, manifest)

    def _read(self, manifest: SnapshotManifest) -> Listing | None:
        chunks = self._stored.read(manifest)
        if chunks is None:
            return None
        listing = listing_of(ListingData(*manifest.key, chunks))
        if listing.topics_hash != manifest.stamp:
            self._stored.stale(manifest)
            return None
        return listing

    def changed(self, key: PartKey) -> None:
        """Note that a part has changed in memory: it will be stored."""
        if self._is_worth_it(self._in_memory(key)):
            self._writer.changed(key)

    async def stop(self, within: float) -> None:
        """Store the parts in memory, for up to ``within`` seconds."""
        await self._writer.stop(within)

    def _is_worth_it(self, found: _InMemory | None) -> bool:
        return found is not None and len(found[0].snapshot.listing) >= LEAST_TOPICS

    def _current(self, key: PartKey) -> Stored | None:
        found = self._in_memory(key)
        return None if found is None else self._stored_of(key, *found)

    def _every(self) -> Iterator[Stored]:
        for key in self._keys():
            found = self._in_memory(key)
            if found is not None and self._is_worth_it(found):
                yield self._stored_of(key, *found)

    def _stored_of(self, key: PartKey, kept: CachedSnapshot[None], topics_hash: str) -> Stored:
        (namespace, view), domain = key
        snapshot = kept.snapshot
        version = CatalogVersion(self._cluster, 0, topics_hash)
        chunks = data_of(snapshot.listing).chunks
        return Stored(namespace, domain, version, chunks, snapshot.nbytes, kept.requests, _digest(repr(view)))


def _digest(text: str) -> str:
    """A hash of a text: no file has names of principals."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST).hexdigest()
