"""Following one namespace: the changes since the generation, up to the catalogue's current version.

An answer must be of a state that the catalogue had after the question came. So every question asks for the current
version. If that is newer than the known one, the changes up to it are read first, once for all waiting questions. A
namespace that cannot be followed exactly raises :exc:`PassToNextLister`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from broker_core import TasksByKey
from broker_core.change_log import CatalogVersion, ChangeLog, Gap
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core_spark.serving.changes.overlay import Overlay, TooManyNames, states_after
from broker_core_spark.serving.pass_to_next_lister import PassToNextLister

__all__ = ["NamespaceFollower"]

#: Changed names that are put into the columns on the event loop (well under a millisecond).
_FEW: Final = 100


class NamespaceFollower:
    """The changes of one namespace since ``version``, the generation's state. For one event loop.

    ``limit`` bounds the changed names. ``timeout`` is the seconds that the change log has.
    """

    def __init__(
        self,
        namespace: NamespaceName,
        version: CatalogVersion,
        *,
        property_keys: Sequence[str] = (),
        limit: int,
        timeout: float,
    ) -> None:
        self._namespace = namespace
        self._keys = tuple(property_keys)
        self._limit = limit
        self._timeout = timeout
        self._reads = TasksByKey[None]()  # by restart
        self._began = version
        #: The state that :attr:`overlay` leads to.
        self.version = version
        self.overlay = Overlay.nothing(namespace, self._keys)
        #: The reason why the namespace cannot be followed any more, and its detail.
        self.ended: tuple[str, str] | None = None
        #: Number of restarts of :attr:`overlay`. Version numbers before and after a restart are not comparable.
        self.restarts = 0
        #: Time of the event loop at which :attr:`version` was last known to be current.
        self.current_at = float("-inf")

    async def current(self, log: ChangeLog) -> tuple[Overlay, CatalogVersion]:
        """The changes up to a state that the catalogue had after this call. Raises :exc:`PassToNextLister`."""
        if self.ended is not None:
            raise PassToNextLister(*self.ended)
        requested_at = asyncio.get_running_loop().time()
        known = self.version
        try:
            now = log.version_now(self._namespace)
            if now is None:
                async with asyncio.timeout(self._timeout):
                    now = await log.version(self._namespace)
            if not now.same_state(self.version):
                await self._move(log, now, known)
        except TimeoutError:
            raise PassToNextLister(
                "unreachable", f"{log.name} did not answer within {self._timeout:g} s"
            ) from None
        except ListingFailed as error:
            raise PassToNextLister("unreachable", str(error)) from error
        self.current_at = max(self.current_at, requested_at)
        return self.overlay, self.version

    async def _move(self, log: ChangeLog, now: CatalogVersion, known: CatalogVersion) -> None:
        """Read the changes up to ``now``. ``known`` was the state here before ``now`` was asked for."""
        if now.catalog_id != self.version.catalog_id:
            raise PassToNextLister("other_catalogue", f"{log.name} is catalogue {now.catalog_id} by now")
        if now.number < self._began.number:
            raise self._end("gap", f"the catalogue is at version {now.number}, older than the generation")
        if now == self._began and not now.same_state(self._began):
            raise self._end("gap", f"version {now.number} came again with other topics: a copy was restored")
        if now.number < known.number and self.version.number >= known.number:
            # An older copy of the catalogue was restored: changes that were read may never have happened.
            self._restart()
        # A read under way may have begun before `now`. The second one did not.
        for _ in range(2):
            if self._has(now):
                return
            await self._reads.result(self.restarts, partial(self._read, log))
        if not self._has(now):
            raise PassToNextLister("unreachable", f"{log.name} does not have the changes up to {now} yet")

    def _has(self, now: CatalogVersion) -> bool:
        return self.version.number > now.number or self.version.same_state(now)

    def _restart(self) -> None:
        self.version, self.overlay = self._began, Overlay.nothing(self._namespace, self._keys)
        self.restarts += 1

    async def _read(self, log: ChangeLog) -> None:
        """Move to the current state of the log."""
        since, before = self.version, self.overlay
        async with asyncio.timeout(self._timeout):
            changes = await log.changes(self._namespace, since)
        if isinstance(changes, Gap) and since is not self._began:
            # A restore may have lost the state that was read last and kept the generation's.
            if self.version is since:
                self._restart()
            await self._read(log)
            return
        if isinstance(changes, Gap):
            if changes.version.catalog_id != since.catalog_id:
                raise PassToNextLister("other_catalogue", changes.reason)
            raise self._end("gap", changes.reason)
        try:
            states = states_after(changes.changes, self._keys, self._limit)
            if len(states) <= _FEW:
                overlay = before.with_states(states)
            else:
                overlay = await asyncio.to_thread(before.with_states, states)
            if len(overlay) > self._limit:
                raise TooManyNames
        except TooManyNames:
            raise self._end(
                "overlay_limit", f"more than {self._limit} names changed since the generation"
            ) from None
        if self.version is since:  # no restart meanwhile
            self.version, self.overlay = changes.version, overlay

    def _end(self, reason: str, detail: str) -> PassToNextLister:
        """Stop following for good: the log only loses its beginning, and changed names only get more."""
        self.ended = reason, f"{self._namespace}: {detail}"
        return PassToNextLister(*self.ended)
