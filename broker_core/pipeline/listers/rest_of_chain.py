"""The rest of the chain after a plugin (``request.rest()``): asking it and returning its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial

from broker_core.listing import Selection, part_of
from broker_core.memory import whole_count
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.listers.call_services import CallServices
from broker_core.pipeline.request.held_permit import HeldPermit
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.pipeline_options import PipelineOptions
from broker_core.pipeline.request.steps import applied_pattern, are_few, names_bytes
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.pipeline.verification.verify_details import CHECK_FACTOR, details_of
from broker_core.plugin_api import DefaultLister, Lease, RestAnswer, Same
from broker_core.plugins import Dispatcher, PluginFailed, RestFailed

__all__ = ["RestOfChain"]


class RestOfChain:
    """Gives each plugin the rest of the chain; ``ask`` asks the plugins from a number of the chain on."""

    def __init__(
        self,
        lister: DefaultLister,
        dispatcher: Dispatcher,
        workers: Workers,
        options: PipelineOptions,
        changes: ChangeNotices,
        ask: Callable[[ListingInProgress, int], Awaitable[AcceptedAnswer]],
    ) -> None:
        self._lister = lister
        self._dispatcher = dispatcher
        self._workers = workers
        self._options = options
        self._changes = changes
        self._ask = ask

    def services(self, progress: ListingInProgress, plugin: str, position: int) -> CallServices:
        """The services for a call of the plugin at ``position`` of the chain."""
        namespace = progress.request.namespace

        def words() -> frozenset[str]:
            behind = self._dispatcher.lister_hook.depends_on(namespace, position + 1)
            return self._dispatcher.dependencies.of(plugin) | behind | self._lister.depends_on

        return CallServices(
            progress.request,
            plugin,
            progress.held,
            words,
            partial(self._answer, progress, plugin, position + 1),
            partial(self._dispatcher.dependencies.add, plugin),
            mark=partial(self._changes.mark, namespace),
            all_calls=progress.all_calls,
        )

    async def _answer(
        self,
        progress: ListingInProgress,
        plugin: str,
        first: int,
        pattern: str | Same | None,
        properties: Mapping[str, str] | Same,
    ) -> RestAnswer:
        """The answer of the rest of the chain after ``plugin``, before any mask."""
        request = progress.request
        memory = RestOfChainMemory(progress.held)
        compiled = request.pattern
        if not isinstance(pattern, Same) and pattern != request.topics_pattern:
            compiled = (
                None
                if pattern is None
                else await self._workers.compile(request.asker, pattern, self._options.patterns.max_length)
            )
        same = compiled is request.pattern and isinstance(properties, Same)
        asked = replace(
            request,
            pattern=compiled,
            properties=request.properties if isinstance(properties, Same) else dict(properties),
            topics_hash=None,
            page=None,
            reserve_bytes=memory.reserve,
        )
        # The versions are of the client's question, not of another one.
        versions = progress.versions if same else {}
        trace = None if progress.trace is None else progress.trace.rest_of(plugin, asked)
        inner = ListingInProgress(
            asked, applied_pattern(asked, self._options), progress.held, trace, versions, progress.all_calls
        )
        try:
            accepted = await self._ask(inner, first)
            selection = accepted.selection
            assert selection is not None  # no lister was given a hash to compare with
            filtered = accepted.filtered
            if inner.pattern is not None and not filtered:
                selection = await self._workers.matching(request.asker, selection, inner.pattern)
                filtered = True
            details = accepted.details
            if details is not None and len(selection) != len(accepted.selection or ()):
                # Handed on with the selection, they would be of topics that are not listed.
                size = details.batch.nbytes + names_bytes(selection)
                async with Lease(progress.held, CHECK_FACTOR * size):
                    work = partial(details_of, details, selection)
                    details = await self._workers.call(request.asker, work, quick=are_few(len(details)))
            await memory.settle(selection, accepted.owned)
        except PluginFailed as failure:
            memory.close()
            raise RestFailed(failure) from failure
        except BaseException:
            memory.close()
            raise
        if trace is not None:
            trace.listed = len(selection)
        return RestAnswer(selection, filtered, accepted.version, accepted.lister, accepted.stale, details)


class RestOfChainMemory:
    """The memory of one ``request.rest()``, a part of the request's permits.

    It grows with reservations further down the chain; in the end it is what the answer holds.
    """

    __slots__ = ("_growing", "_held", "size")

    def __init__(self, held: HeldPermit) -> None:
        self._held = held
        self._growing = asyncio.Lock()
        self.size = 0

    async def reserve(self, size: int) -> None:
        """Have at least ``size`` bytes in all, as :meth:`HeldPermit.reserve`."""
        needed = whole_count(size)
        async with self._growing:
            if needed > self.size:
                await self._held.grow(needed - self.size)
                self.size = needed

    async def settle(self, selection: Selection, owned: int) -> None:
        """Keep the bytes of ``selection``, as long as anybody has it, and give all else back.

        ``owned`` are the bytes of a listing that was made for this answer alone: a shared listing is charged to its
        keeper.
        """
        rows = part_of(selection)
        await self.reserve(owned + rows.nbytes)
        if owned:
            self._held.keep_with(selection.listing, owned)
            self.size -= owned
        if rows.nbytes:
            self._held.keep_with(rows, rows.nbytes)
            self.size -= rows.nbytes
        self.close()

    def close(self) -> None:
        """Give back all memory that no answer has."""
        size, self.size = self.size, 0
        self._held.give_back(size)
