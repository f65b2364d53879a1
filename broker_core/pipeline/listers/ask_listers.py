"""Asking the plugins that list, in their order, then the default lister (the catalogue, or the brokers upstream).

The first success (or ``unchanged``) ends the chain; pass through and ``None`` go on; a failure is an error, goes on, or
is replaced by the plugin's last answer, depending on its ``on_failure``. A plugin may ask the rest of the chain after
it (``request.rest()``), which is the same way from a later place on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, MutableSequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_core.concurrency import EACH_NAME
from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.listing import Selection, part_of
from broker_core.memory import whole_count
from broker_core.metrics import Metrics
from broker_core.pipeline.answer import without_hash
from broker_core.pipeline.change_notices import ChangeNotices
from broker_core.pipeline.listers.accept_answer import Acceptance, GuardedAnswers
from broker_core.pipeline.listers.former_answers import FormerAnswers, FormerAnswersToQuestion, PluginAnswer
from broker_core.pipeline.listers.verify_answer_claims import CHECK_FACTOR, details_of
from broker_core.pipeline.request.held_permit import HeldPermit, names_bytes
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.unsupported_patterns import PipelineOptions, applied_pattern
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugin_api import (
    AnswerKind,
    DefaultLister,
    ListingRequest,
    RequestServices,
    RestAnswer,
    Same,
)
from broker_core.plugins import (
    ChainStep,
    Dispatcher,
    PluginFailed,
    RefusedByPlugin,
    RestFailed,
    bounded,
)

if TYPE_CHECKING:
    from broker_core.plugins import HookCaller

__all__ = ["Listers"]

_WITHOUT_TOPICS: Final = (AnswerKind.PASS_THROUGH, AnswerKind.REFUSED)


@dataclass(slots=True, eq=False)
class Listers:
    """All listers of a pipeline."""

    _lister: DefaultLister
    _dispatcher: Dispatcher
    _acceptance: Acceptance
    _former: FormerAnswers
    _workers: Workers
    _options: PipelineOptions
    _changes: ChangeNotices
    _metrics: Metrics
    _guarded: GuardedAnswers

    async def list(self, progress: ListingInProgress, first: int = 0) -> AcceptedAnswer:
        """The answer of the plugins from number ``first`` of the chain, or of the default lister."""
        tables = progress.tables
        while True:
            accepted = await self._first(progress, first)
            if tables is None or accepted.lister != tables.lister or accepted.selection is None:
                return accepted
            accepted.table = await tables.of(accepted.selection.listing)
            if accepted.table is not None:
                return accepted
            # The namespace has changed since it was listed.

    async def _first(self, progress: ListingInProgress, first: int) -> AcceptedAnswer:
        """The first answer of the chain from a place on."""
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

        Raises :exc:`~broker_core.plugins.failures.RefusedByPlugin` if a plugin refuses; :exc:`PluginFailed` if one
        fails whose ``on_failure`` is ``error``, or ``stale`` while there is no former answer of it. Errors that the
        broker itself raises to a plugin, and that it lets pass, are final: the
        :exc:`~broker_core.errors.TooManyRequests` of ``request.reserve()``, the :exc:`RestFailed` of
        ``request.rest()``.
        """
        versions = self._guarded.versions(request.namespace)
        # A pattern that is never compiled is too long to be remembered.
        former = None if self._options.is_long(request) else self._former.to(request, progress.pattern)
        chain = self._dispatcher.lister_hook.chain(request.namespace)[first:]
        steps: list[ChainStep] = []
        answered = None
        try:
            for position, (name, caller) in enumerate(chain, first):
                if caller is None or (only is not None and name not in only):
                    steps.append(ChainStep(name, "not_asked"))
                    continue
                answered = await self._of_plugin(progress, request, former, caller, position, steps)
                if answered is not None and answered.word != "pass_through":
                    break
        except (PluginFailed, RestFailed, RefusedByPlugin):
            self._note(progress, chain, steps)
            raise
        self._note(progress, chain, steps)
        for step in steps:
            if step.stale is not None:
                self._metrics.stale_answer(step.plugin, step.stale)
        accepted = None if answered is None else answered.accepted
        if accepted is not None:
            # Not the business of one plugin's failure policy: the next lister has other topics.
            await self._guarded.check(request, accepted, versions)
        return accepted

    def _note(
        self,
        progress: ListingInProgress,
        chain: tuple[tuple[str, HookCaller | None], ...],
        steps: MutableSequence[ChainStep],
    ) -> None:
        """Note in the trace how the plugins answered, and which ones were not asked."""
        if progress.trace is not None:
            skipped = [ChainStep(name, "not_asked") for name, _ in chain[len(steps) :]]
            progress.trace.chain = [*steps, *skipped]

    async def _of_plugin(
        self,
        progress: ListingInProgress,
        request: ListingRequest,
        former: FormerAnswersToQuestion | None,
        caller: HookCaller,
        position: int,
        steps: MutableSequence[ChainStep],
    ) -> PluginAnswer | None:
        """Answer of one plugin, or its replacement; ``None`` if it failed and the next plugin is due."""
        name, plugin, clock = caller.name, caller.plugin, asyncio.get_running_loop().time
        started = clock()
        try:
            answered = await self._ask(progress, request, former, caller, position)
        except (PluginFailed, RestFailed) as failure:
            step = ChainStep(name, "error", clock() - started, failure.detail)
            steps.append(step)
            if isinstance(failure, RestFailed):
                raise
            if plugin.options.on_failure == "next":
                caller.statistics.passed_over += 1
                return None
            recalled: PluginAnswer | None = None
            if plugin.options.on_failure == "stale" and former is not None:
                recalled = former.recalled(plugin, request.topics_hash, clock())
            if recalled is None:
                raise
            caller.statistics.stale += 1
            steps[-1] = replace(step, answer=recalled.word, stale=recalled.age)
            return recalled
        word, accepted, result, version, kept, _ = answered
        why = None if result is None else result.why
        steps.append(ChainStep(name, word, clock() - started, kept=kept, version=version, why=why))
        if word == "refused":
            if former is not None:
                former.refused(plugin)
            assert result is not None
            assert result.refusal is not None
            said = result.refusal
            raise RefusedByPlugin(name, bounded(said.message), said.cause, reason="refused")
        if former is not None and plugin.options.on_failure == "stale":
            former.answered(plugin, accepted, started)
        return answered

    async def _ask(
        self,
        progress: ListingInProgress,
        request: ListingRequest,
        former: FormerAnswersToQuestion | None,
        caller: HookCaller,
        position: int,
    ) -> PluginAnswer:
        """The answer of one plugin: the kept one at its version, or it is asked."""
        name, versions = caller.name, self._dispatcher.version_hook
        version = await versions.of(request, name, progress.versions)
        if version is None or former is None:
            answered, _ = await self._call(progress, request, caller, position)
            return answered._replace(version=version)
        found = await former.at_version(name, version, caller.plugin.options.deadline)
        if found is not None:
            return found
        with former.make(name, version) as run:
            answered, is_own = await self._call(progress, request, caller, position)
            if is_own and await versions.still(request, name, version, answered.result):
                run.kept = former.keep(name, version, answered.accepted)
        return answered._replace(version=version)

    async def _call(
        self, progress: ListingInProgress, request: ListingRequest, caller: HookCaller, position: int
    ) -> tuple[PluginAnswer, bool]:
        """The answer of one plugin that is asked now, and whether its topics are its own."""
        services, accepted = self._services(progress, caller.name, position), None
        try:
            async with self._dispatcher.lister_hook.asking(caller, request, services) as (result, word):
                if result is not None and result.kind not in _WITHOUT_TOPICS:
                    accepted = await self._acceptance.accept(progress, caller.plugin, result)
        finally:
            services.close()
        return PluginAnswer(word, accepted, result), word != "refused" and not services.rest_requested

    # -- the rest of the chain

    def _services(self, progress: ListingInProgress, plugin: str, position: int) -> RequestServices:
        """The services for a call of the plugin at ``position`` of the chain."""
        namespace, dependencies = progress.request.namespace, self._dispatcher.dependencies

        def words() -> frozenset[str]:
            later = self._dispatcher.lister_hook.depends_on(namespace, position + 1)
            return dependencies.of(plugin) | later | self._lister.depends_on

        return RequestServices(
            progress.request,
            plugin,
            progress.held,
            words,
            partial(self._rest, progress, plugin, position + 1),
            partial(dependencies.add, plugin),
            mark=partial(self._changes.mark, namespace),
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
        rest = replace(
            request,
            pattern=compiled,
            properties=request.properties if isinstance(properties, Same) else dict(properties),
            topics_hash=None,
            page=None,
            reserve_bytes=memory.reserve,
        )
        # The versions are of the client's question, not of another one.
        versions = progress.versions if same else {}
        trace = None if progress.trace is None else progress.trace.rest_of(plugin, rest)
        inner = ListingInProgress(
            rest, applied_pattern(rest, self._options), progress.held, trace, versions, progress.all_calls
        )
        try:
            accepted = await self.list(inner, first)
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
                async with progress.held.leased(CHECK_FACTOR * size):
                    work = partial(details_of, details, selection)
                    details = await self._workers.call(request.asker, work, EACH_NAME * len(details))
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
