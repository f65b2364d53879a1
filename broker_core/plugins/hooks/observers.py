"""The observers (``broker_core_listing_served``): notified of served listings; no client waits for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import structlog

from broker_core.errors import ListingFailed
from broker_core.immutable import copied
from broker_core.plugin_api import ListingOutcome, ListingRequest
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.load.registry import LoadedPlugin

__all__ = ["BACKLOG", "Observer", "Observers"]

log = structlog.get_logger(__name__)

_SERVED: Final = "broker_core_listing_served"

#: Outcomes that wait for one slow observer; later ones are dropped and counted.
BACKLOG: Final = 1000


class Observer:
    """One plugin's ``broker_core_listing_served``, notified of one outcome after the other.

    So it takes one thread at most. It gets the request without its permits, which are released by then.
    """

    def __init__(self, caller: HookCaller) -> None:
        self.caller = caller
        self.dropped = 0
        self._backlog: deque[tuple[ListingRequest, ListingOutcome]] = deque()
        self._task: asyncio.Task[None] | None = None

    def enqueue(self, request: ListingRequest, outcome: ListingOutcome) -> None:
        """Queue an outcome for the plugin; must run on the event loop."""
        if len(self._backlog) >= BACKLOG:
            self.dropped += 1
            return
        # A copy of the outcome: an observer may change its own, and others must not see that.
        self._backlog.append((replace(request, reserve_bytes=_nothing), copied(outcome)))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self, timeout: float) -> None:
        """Notify the plugin of the queued outcomes, for at most ``timeout`` seconds."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=timeout)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        while self._backlog:
            request, outcome = self._backlog.popleft()
            try:
                await self.caller.call(request, _anything, outcome=outcome)
            except ListingFailed:
                pass  # counted and logged by the caller


class Observers:
    """All observers; each is notified of listings in the namespaces of its plugin."""

    def __init__(
        self, plugins: Iterable[LoadedPlugin], callers: Mapping[str, Mapping[str, HookCaller]]
    ) -> None:
        self._observers = [
            (plugin, Observer(callers[plugin.name][_SERVED]))
            for plugin in plugins
            if _SERVED in callers[plugin.name]
        ]

    def __len__(self) -> int:
        return len(self._observers)

    def enqueue(self, request: ListingRequest, outcome: ListingOutcome) -> None:
        """Queue an outcome for the observers of its namespace; returns at once."""
        for plugin, observer in self._observers:
            if plugin.options.covers(request.namespace):
                observer.enqueue(request, outcome)

    def dropped(self) -> dict[str, int]:
        """Outcomes that each observer was too slow to see, by plugin."""
        return {plugin.name: observer.dropped for plugin, observer in self._observers}

    async def close(self, timeout: float) -> None:
        """Notify each of its queued outcomes, for at most ``timeout`` seconds."""
        await asyncio.gather(*(observer.close(timeout) for _, observer in self._observers))


async def _nothing(_size: int) -> None:
    """Reserve nothing: the listing is served."""


def _anything(_answer: object, _request: ListingRequest) -> tuple[None, str]:
    return None, "observed"
