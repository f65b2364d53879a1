"""A store of topics in memory, to be put under live snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pyarrow as pa

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode, NamespaceName
from broker_core.upstream.snapshots import SHARED, StoreListing, UpdateReceiver, View

__all__ = ["NAMES", "NAMESPACE", "OTHERS", "MemoryStore"]

NAMESPACE = NamespaceName("t", "n")
NAMES = [f"persistent://t/n/topic-{index:05d}" for index in range(5000)]
OTHERS = [f"non-persistent://t/n/other-{index}" for index in range(3)]


class MemoryStore:
    """A store in memory, whose listings wait for ``gate`` and can fail."""

    def __init__(self, namespace: NamespaceName = NAMESPACE, *, has_verdicts: bool = False) -> None:
        self.namespace = namespace
        self.has_verdicts = self.lists_for_all = has_verdicts
        self.verdicts: list[tuple[str | None, str]] = []
        self.denied: set[str | None] = set()
        self.names = {Mode.PERSISTENT: list(NAMES), Mode.NON_PERSISTENT: list(OTHERS)}
        self.asked: list[tuple[View, Mode, str | None]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: ListingFailed | None = None

    def view_of(self, asker: Asker) -> View:
        if asker.role == "gone":
            raise ListingFailed("there are no credentials of this client", cause=Cause.UPSTREAM)
        return SHARED if self.has_verdicts else asker.role

    async def list(
        self,
        view: View,
        namespace: NamespaceName,
        mode: Mode,
        known_hash: str | None,
        admit: Callable[[int], Awaitable[None]],
    ) -> StoreListing:
        assert namespace == self.namespace
        self.asked.append((view, mode, known_hash))
        names, error = list(self.names[mode]), self.error
        await self.gate.wait()
        if error is not None:
            raise error
        told = topics_hash(names)
        if told == known_hash:
            return StoreListing(None, told)
        column = pa.array(names, pa.large_string())
        await admit(column.nbytes)
        return StoreListing(column, told, column.nbytes)

    async def allow(self, asker: Asker, namespace: NamespaceName) -> None:
        self.verdicts.append((asker.role, str(namespace)))
        await self.gate.wait()
        if asker.role in self.denied:
            raise ListingFailed("Client is not authorized", cause=Cause.DENIED, reason="denied")

    async def watch(self, view: View, namespace: NamespaceName, watcher: UpdateReceiver) -> bool:
        """No watch."""
        return False
