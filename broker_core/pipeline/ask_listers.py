"""Asking the plugins in order, then the default lister: all of them, or those behind one that asks for the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline.accept_answer import Acceptance
from broker_core.pipeline.call_services import CallServices
from broker_core.pipeline.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.options import PipelineOptions
from broker_core.pipeline.remembered.answers_by_version_hook import AnswersByVersionHook
from broker_core.pipeline.remembered.last_good_answers import LastGoodAnswers
from broker_core.pipeline.rest_of_chain_memory import RestOfChainMemory
from broker_core.pipeline.steps import applied_pattern, are_few, names_bytes, without_hash
from broker_core.pipeline.verification.verify_details import CHECK_FACTOR, details_of
from broker_core.pipeline.worker_threads import Workers
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import DefaultLister
from broker_core.plugin_api.request_lease import Lease
from broker_core.plugin_api.rest_answer import RestAnswer, Same
from broker_core.plugins import BehindFailed, Dispatcher, PluginFailed

__all__ = ["Listers"]


class Listers:
    """Everybody who lists; one for a pipeline."""

    def __init__(
        self,
        lister: DefaultLister,
        dispatcher: Dispatcher,
        acceptance: Acceptance,
        last: LastGoodAnswers,
        versioned: AnswersByVersionHook,
        workers: Workers,
        options: PipelineOptions,
        metrics: Metrics,
    ) -> None:
        self._lister = lister
        self._dispatcher = dispatcher
        self._acceptance = acceptance
        self._last = last
        self._versioned = versioned
        self._workers = workers
        self._options = options
        self._metrics = metrics

    async def list(self, progress: ListingInProgress, first: int = 0) -> AcceptedAnswer:
        """What the plugins from number ``first`` of the chain say, or the default lister."""
        request = progress.request
        if self._dispatcher.masks(request.namespace):
            # A mask changes what the client's hash is of: whoever lists must not compare it with the whole.
            request = without_hash(request)
        if self._dispatcher.lists(request.namespace):
            accepted = await self.of_plugins(progress, request, first=first)
            if accepted is not None:
                return accepted
        if not self._options.patterns.evaluate:
            request = replace(request, pattern=None)
        result = await self._lister.list_topics(request)
        try:
            return await self._acceptance.accept(progress, None, result)
        except TooManyRequests:
            raise
        except ListingFailed as failure:
            raise ListingFailed(f"{self._lister.name} {failure.message}", reason=failure.reason) from failure

    async def of_plugins(
        self,
        progress: ListingInProgress,
        request: ListingRequest,
        *,
        first: int = 0,
        only: Collection[str] | None = None,
    ) -> AcceptedAnswer | None:
        """What the plugins from number ``first`` of the chain say, or ``only`` these; ``None``: all of them pass."""
        # A pattern that is never compiled is too long to be remembered.
        remembers = not self._options.is_long(request)
        chain = await self._dispatcher.lister_hook.ask(
            request,
            partial(self._acceptance.accept, progress),
            self._last.to(request, progress.pattern) if remembers else None,
            first=first,
            only=only,
            services=partial(self._services, progress),
            keeps=self._versioned.to(request)
            if remembers and self._dispatcher.version_hook.told_by_any
            else None,
            versions=progress.versions,
        )
        if progress.trace is not None:
            progress.trace.chain = list(chain.steps)
        for step in chain.steps:
            if step.stale is not None:
                self._metrics.stale_answer(step.plugin, step.stale)
        accepted: AcceptedAnswer | None = chain.accepted
        return accepted

    def _services(self, progress: ListingInProgress, plugin: str, position: int) -> CallServices:
        """What the plugin at ``position`` of the chain has in its call."""
        namespace = progress.request.namespace

        def words() -> frozenset[str]:
            behind = self._dispatcher.lister_hook.depends_on(namespace, position + 1)
            return self._dispatcher.dependencies.of(plugin) | behind | self._lister.depends_on

        return CallServices(
            progress.request,
            plugin,
            progress.held,
            words,
            partial(self._rest, progress, plugin, position + 1),
            partial(self._dispatcher.dependencies.add, plugin),
            mark=partial(self._versioned.mark, namespace),
            all_calls=progress.all_calls,
        )

    async def _rest(
        self,
        progress: ListingInProgress,
        plugin: str,
        first: int,
        pattern: str | Same | None,
        properties: Mapping[str, str] | Same,
    ) -> RestAnswer:
        """What everything behind ``plugin`` answers, before any mask."""
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
        # Versions are those of another question where the question is another.
        versions = progress.versions if same else {}
        trace = None if progress.trace is None else progress.trace.rest_of(plugin, asked)
        inner = ListingInProgress(
            asked, applied_pattern(asked, self._options), progress.held, trace, versions, progress.all_calls
        )
        try:
            accepted = await self.list(inner, first)
            selection = accepted.selection
            assert selection is not None  # nobody was given a hash to compare with
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
            raise BehindFailed(failure) from failure
        except BaseException:
            memory.close()
            raise
        if trace is not None:
            trace.listed = len(selection)
        return RestAnswer(selection, filtered, accepted.version, accepted.lister, accepted.stale, details)
