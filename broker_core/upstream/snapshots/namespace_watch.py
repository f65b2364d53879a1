"""Watches of namespaces at the cluster, which keep snapshots true between two comparisons.

A watch reports each topic that came or went, with the hash of all topics after it. An update is applied if the snapshot
then has that hash; whatever else happens (an update that was lost, doubled or out of order, a lost session) ends in a
listing of the cluster, which is the truth. While topics change fast that listing may be newer than updates which come
after it: they are skipped, up to the one that leads to it. A cluster whose hashes never fit is no longer watched, but
compared by its listings alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from broker_core.concurrency import ended_within
from broker_core.errors import ListingFailed
from broker_core.names import Mode
from broker_core.upstream.snapshots.live_snapshots import LiveSnapshots
from broker_core.upstream.snapshots.snapshot_log import ViewOfNamespace
from broker_core.upstream.snapshots.store_contract import TopicStore, TopicUpdate

__all__ = ["NamespaceWatches"]

#: Watches at a time.
_MOST: Final = 1000
#: Seconds without a question after which a namespace is watched no more, and between two looks.
_IDLE: Final = 600.0
_SWEEP: Final = 30.0
#: Seconds before a watch that was lost is opened again: the first time, and at the most.
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 30.0
#: Updates that are applied together, and those in a row with another hash after which the watch of a namespace ends.
_TOGETHER: Final = 1000
_MISFITS: Final = 5
#: Updates that may wait to be applied.
_WAITING: Final = 10_000
#: Seconds to wait for the update that leads to a listing which was newer than the updates so far.
_LATE: Final = 1.0

_log = structlog.get_logger(__name__)


class _Watch:
    """The watch of one place, from :meth:`run` until it ends. The store calls :meth:`began` and :meth:`update`."""

    def __init__(
        self, store: TopicStore, live: LiveSnapshots, place: ViewOfNamespace, counts: Counter[str]
    ) -> None:
        self._store = store
        self._live = live
        self._place = place
        self._counts = counts
        self._updates: deque[TopicUpdate] = deque()
        self._is_misfit = False
        self._misfits = 0
        #: Whether the snapshot is of a listing, and no update was applied to it yet.
        self._is_listed = False
        self._woken = asyncio.Event()
        #: Whether the cluster reports changes now.
        self.is_open = False

    @property
    def known_hash(self) -> str | None:
        """The hash of the snapshot, so that the store need not send all topics."""
        return self._live.known_hash(self._place)

    def began(self, topics_hash: str) -> None:
        """Note that the watch is open; ``topics_hash`` is the hash of all topics then."""
        self.is_open = True
        if topics_hash != self.known_hash:
            self._is_misfit = True
            self._woken.set()

    def update(self, update: TopicUpdate) -> None:
        """Note that some topics came or went."""
        if len(self._updates) >= _WAITING:
            self._updates.clear()
            self._is_misfit = True
        self._updates.append(update)
        self._woken.set()

    async def run(self) -> None:
        """Watch until the cluster offers no watches, its hashes do not fit, or the snapshot is no longer in memory."""
        pause = _FIRST_PAUSE
        while self._misfits < _MISFITS and self.known_hash is not None:
            taking = asyncio.create_task(self._take_in())
            watching = asyncio.create_task(self._store.watch(self._place.view, self._place.namespace, self))
            try:
                await asyncio.wait((taking, watching), return_when=asyncio.FIRST_COMPLETED)
                if watching.done() and not watching.cancelled():
                    if watching.exception() is None and not watching.result():
                        return  # it offers none
                    failed = watching.exception()
                    if failed is not None and not isinstance(failed, ListingFailed):
                        raise failed
            finally:
                pause = _FIRST_PAUSE if self.is_open else min(2 * pause, _LONGEST_PAUSE)
                self.is_open = False
                for task in (taking, watching):
                    task.cancel()
                await asyncio.gather(taking, watching, return_exceptions=True)
                self._updates.clear()
            if taking.cancelled():
                self._counts["lost"] += 1
                await asyncio.sleep(pause)
        if self._misfits >= _MISFITS:
            _log.warning(
                "the hashes of a watch at the brokers do not fit, the namespace is compared by listings alone",
                namespace=str(self._place.namespace),
            )

    async def _take_in(self) -> None:
        """Apply the reported updates, until that makes no sense any more."""
        while self._misfits < _MISFITS and self.known_hash is not None:
            await self._woken.wait()
            self._woken.clear()
            while (self._updates or self._is_misfit) and self._misfits < _MISFITS:
                batch = [self._updates.popleft() for _ in range(min(len(self._updates), _TOGETHER))]
                is_misfit, self._is_misfit = self._is_misfit, False
                is_listed, self._is_listed = self._is_listed, False
                if not is_misfit and await self._live.move(self._place, batch):
                    self._misfits = 0
                    self._counts["updates"] += len(batch)
                    continue
                if is_listed and not is_misfit:
                    # The listing has changes of which the updates are still to come: no misfit, if they do.
                    self._updates.extendleft(reversed(batch))
                    if await ended_within(_LATE, self._led_to_listing()):
                        continue
                    for _ in batch[: len(self._updates)]:
                        self._updates.popleft()
                self._counts["misfits"] += 1
                self._misfits += 1
                with suppress(ListingFailed):  # whoever asks hears of it, once the snapshot is too old
                    await self._live.current(self._place, Mode.PERSISTENT, self._live.clock())
                    self._is_listed = True

    async def _led_to_listing(self) -> None:
        """Wait for the update that leads to the topics of the snapshot; it and those before it are forgotten."""
        while (known := self.known_hash) not in [update.topics_hash for update in self._updates]:
            self._woken.clear()
            await self._woken.wait()
        while self._updates.popleft().topics_hash != known:
            pass


class NamespaceWatches:
    """The watches of one store's snapshots. Made and used on one event loop."""

    def __init__(
        self, store: TopicStore, live: LiveSnapshots, is_followed: Callable[[ViewOfNamespace], bool]
    ) -> None:
        self._store = store
        self._live = live
        self._is_followed = is_followed
        self._watches: dict[ViewOfNamespace, tuple[_Watch, asyncio.Task[None]]] = {}
        self._given_up: dict[ViewOfNamespace, float] = {}
        self._sweeping: asyncio.Task[None] | None = None
        #: Events of watches: applied updates, misfits, lost sessions.
        self.counts: Counter[str] = Counter({"updates": 0, "misfits": 0, "lost": 0})

    @property
    def open(self) -> int:
        """The number of namespaces whose changes the cluster reports now."""
        return sum(watch.is_open for watch, _ in self._watches.values())

    def is_open(self, place: ViewOfNamespace) -> bool:
        """Whether the cluster reports changes of a place now."""
        return place in self._watches and self._watches[place][0].is_open

    def ensure(self, place: ViewOfNamespace) -> None:
        """Watch a place that has a snapshot, unless it is watched, or watching is known to be of no use."""
        if place in self._watches or len(self._watches) >= _MOST:
            return
        if self._given_up.get(place, 0.0) > self._live.clock():
            return
        watch = _Watch(self._store, self._live, place, self.counts)
        task = asyncio.get_running_loop().create_task(watch.run())
        self._watches[place] = watch, task
        task.add_done_callback(lambda ended: self._ended(place, ended))
        if self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep())

    async def close(self) -> None:
        """End all watches."""
        tasks = [task for _, task in self._watches.values()]
        if self._sweeping is not None:
            tasks.append(self._sweeping)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, place: ViewOfNamespace, task: asyncio.Task[None]) -> None:
        del self._watches[place]
        if task.cancelled():
            return
        failed = task.exception()
        if failed is not None:
            _log.error("a watch at the brokers failed", namespace=str(place.namespace), exc_info=failed)
        if failed is not None or self._live.known_hash(place) is not None:
            if len(self._given_up) >= _MOST:
                self._given_up.clear()
            self._given_up[place] = self._live.clock() + _IDLE

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP)
            before = self._live.clock() - _IDLE
            for place, (_, task) in list(self._watches.items()):
                if self._live.requested_at(place) < before and not self._is_followed(place):
                    task.cancel()
