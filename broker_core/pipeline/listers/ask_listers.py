"""Asking the plugins that list, in their order, then the default lister (the catalogue, or the brokers upstream)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.metrics import Metrics
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.listers.accept_answer import Acceptance
from broker_core.pipeline.listers.guarded_answers import GuardedAnswers
from broker_core.pipeline.listers.rest_of_chain import RestOfChain
from broker_core.pipeline.remembered.answers_by_version_hook import AnswersByVersionHook
from broker_core.pipeline.remembered.last_good_answers import LastGoodAnswers
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.pipeline_options import PipelineOptions
from broker_core.pipeline.request.steps import without_hash
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugin_api import DefaultLister, ListingRequest
from broker_core.plugins import Dispatcher

__all__ = ["Listers"]


class Listers:
    """All listers of a pipeline."""

    def __init__(
        self,
        lister: DefaultLister,
        dispatcher: Dispatcher,
        acceptance: Acceptance,
        last: LastGoodAnswers,
        versioned: AnswersByVersionHook,
        workers: Workers,
        options: PipelineOptions,
        changes: ChangeNotices,
        metrics: Metrics,
        guarded: GuardedAnswers,
    ) -> None:
        self._lister = lister
        self._dispatcher = dispatcher
        self._acceptance = acceptance
        self._last = last
        self._versioned = versioned
        self._options = options
        self._metrics = metrics
        self._guarded = guarded
        self._rest = RestOfChain(lister, dispatcher, workers, options, changes, self.list)

    async def list(self, progress: ListingInProgress, first: int = 0) -> AcceptedAnswer:
        """The answer of the plugins from number ``first`` of the chain, or of the default lister."""
        request = progress.request
        if self._dispatcher.masks(request.namespace) or progress.topics is not None:
            # The client's hash is of the visible names: a lister must not compare it with the whole.
            request = without_hash(request)
        if self._dispatcher.lists(request.namespace):
            accepted = await self.of_plugins(progress, request, first=first)
            if accepted is not None:
                return accepted
        return await self.of_default(progress, request)

    async def of_default(self, progress: ListingInProgress, request: ListingRequest) -> AcceptedAnswer:
        """The answer of the default lister."""
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
        """The answer of the plugins from number ``first`` on, or of the plugins in ``only``; ``None``: all of them
        pass.
        """
        versions = self._guarded.versions(request.namespace)
        # A pattern that is never compiled is too long to be remembered.
        remembers = not self._options.is_long(request)
        chain = await self._dispatcher.lister_hook.ask(
            request,
            partial(self._acceptance.accept, progress),
            self._last.to(request, progress.pattern) if remembers else None,
            first=first,
            only=only,
            services=partial(self._rest.services, progress),
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
        if accepted is not None:
            # Not the business of one plugin's failure policy: the next lister has other topics.
            await self._guarded.check(request, accepted, versions)
        return accepted
