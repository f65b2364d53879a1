"""Asking plugins, the default lister and masks about single topics, within permits and in time.

A lister whose answers do not depend on the pattern is asked for the whole namespace, and concurrent requests share its
answer; any other lister is asked for the topics alone, by a literal pattern. The meaning of the answers for a topic is
decided in :mod:`broker_core.service`.

Masks are asked once for all waiting lookups of one asker: a mask judges each name by itself, so the names of several
lookups may stand in one column. A client that opens hundreds of topics looks each of them up; a call of a plugin for
each costs many times more than the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import re2

from broker_core.access import Asker
from broker_core.concurrency import EACH_NAME
from broker_core.errors import ListingFailed
from broker_core.immutable import copied
from broker_core.listing import Details, Selection
from broker_core.memory import Estimates, Permits
from broker_core.names import PERSISTENT, Mode, NamespaceName, TopicName
from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core.pipeline.answer import bad_topics
from broker_core.pipeline.listers.ask_listers import Listers
from broker_core.pipeline.listers.listing_details import ListingDetails
from broker_core.pipeline.request.held_permit import HeldPermit, sizes_of, unknown_size
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.unsupported_patterns import PipelineOptions
from broker_core.pipeline.runs.in_flight import NextRuns
from broker_core.pipeline.runs.time_budget import TimeBudget
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugin_api import DefaultLister, DescribeRequest, ListingRequest, key_of
from broker_core.plugins import Dispatcher

__all__ = ["MasksInFlight", "Seen", "TopicQuestions"]

T = TypeVar("T")


class TopicQuestions:
    """Questions about single topics to the ``listers`` of one pipeline.

    Raises :exc:`~broker_core.errors.ListingFailed` for questions that cannot be asked.
    """

    def __init__(
        self,
        lister: DefaultLister,
        dispatcher: Dispatcher,
        permits: Permits,
        detailing: ListingDetails,
        workers: Workers,
        options: PipelineOptions,
        listers: Listers,
    ) -> None:
        self._lister = lister
        self._dispatcher = dispatcher
        self._permits = permits
        self._detailing = detailing
        self.budget = TimeBudget(options.time_budget, "The lookup took longer than", ListingFailed)
        self._workers = workers
        self._listers = listers
        self._estimates = Estimates()
        self._listings: NextRuns[None, AcceptedAnswer | None] = NextRuns()
        self._masks = MasksInFlight()

    async def listed(
        self,
        request: ListingRequest,
        topics: Sequence[TopicName],
        plugins: Sequence[str] | None,
    ) -> AcceptedAnswer | None:
        """The topics that ``plugins`` list, one after the other: of ``topics``, or more; ``None`` if all of them pass.

        Without ``plugins``, those that the default lister lists; without ``topics``, all.
        """
        depends_on = self._words(request.namespace, plugins)
        if topics and "pattern" in depends_on:
            request = copied(request, pattern=_literal(topics))
        while True:
            key = key_of(request, depends_on, plugins, request.wants)
            accepted, _ = await self._listings.ask(key, lambda _: self._list(request, plugins), None)
            known, depends_on = depends_on, self._words(request.namespace, plugins)
            if known == depends_on:
                return accepted
            # A plugin has read a field that it does not declare: the answer may be for another asker.

    async def described(
        self, plugin: str, request: ListingRequest, topics: Sequence[TopicName]
    ) -> Details | None:
        """The details that a plugin's ``broker_core_describe_topics`` gives of topics; ``None`` if it passes."""
        names = dict.fromkeys(str(name) for topic in topics for name in (topic, topic.partitioned_name))
        sizes = (request.namespace, plugin, len(names).bit_length())
        held = HeldPermit(self._permits, self._estimates.of(request.namespace, sizes))
        question = DescribeRequest(
            request.namespace,
            request.asker,
            pa.array(names, pa.large_string()),
            None,
            request.wants,
            request.deadline,
            held,
        )
        progress = ListingInProgress(request, None, held, None)
        accept = partial(self._accepted, progress, question)
        async with held:
            details: Details | None = await self._dispatcher.describe_hook.details(plugin, question, accept)
        held.release()
        return details

    async def detailed(self, request: ListingRequest, pick: Callable[[Selection, Details], T]) -> T:
        """The result of ``pick`` for the whole namespace with the details that ``request`` wants, from any lister."""
        held, progress = self._held(request)
        async with held:
            accepted = await self._listers.list(progress)
            selection = accepted.selection
            assert selection is not None  # the request has no hash
            details = await self._detailing.of_selection(progress, accepted, selection, selection)
            work = partial(pick, selection, details)
            found = await self._workers.call(request.asker, work, EACH_NAME * len(selection))
        held.release(accepted.owned)
        return found

    async def visible(self, request: ListingRequest, names: pa.LargeStringArray) -> Seen:
        """The mask of ``names`` that the plugins' masks show, for a question without properties; ``None``: all."""
        ask = partial(self._dispatcher.mask_hook.visible, request, by_name=True)
        while True:
            words = self._dispatcher.mask_hook.depends_on(request.namespace)
            seen = await self._masks.visible(key_of(request, words), names, ask)
            if words == self._dispatcher.mask_hook.depends_on(request.namespace):
                return seen
            # A mask has read a field that it does not declare: the verdict may be about another asker.

    def request(
        self,
        namespace: NamespaceName,
        domain: str,
        asker: Asker,
        wants: frozenset[str] = frozenset(),
        deadline: float | None = None,
    ) -> ListingRequest:
        """A question about topics of a namespace and a domain, which ends with the time of a lookup or before."""
        mode = Mode.PERSISTENT if domain == PERSISTENT else Mode.NON_PERSISTENT
        end = self.budget.deadline()
        end = end if deadline is None else min(end, deadline)
        return ListingRequest(namespace, mode, asker=asker, deadline=end, wants=wants)

    async def _accepted(
        self, progress: ListingInProgress, question: DescribeRequest, details: Details
    ) -> Details:
        if "partitions" not in details.columns:
            raise bad_topics("gave details without the column 'partitions', which was asked for")
        return await self._detailing.accepted(progress, question, details)

    def _words(self, namespace: NamespaceName, plugins: Sequence[str] | None) -> frozenset[str]:
        """The words of what the answers about a topic depend on, as far as known."""
        chain = self._dispatcher.describe_hook.plugins(namespace)
        words = frozenset().union(*(self._dispatcher.dependencies.of(plugin.name) for plugin, _ in chain))
        return words if plugins is not None else words | self._lister.depends_on

    def _held(self, request: ListingRequest) -> tuple[HeldPermit, ListingInProgress]:
        sizes = sizes_of(self._lister, request.namespace, request.asker)
        question = (sizes, request.mode, request.topics_pattern)
        estimate = self._estimates.of(sizes, question, unknown_size(self._permits))
        held = HeldPermit(self._permits, estimate, request.asker.connection)
        reserving = copied(request, reserve_bytes=held.reserve)
        return held, ListingInProgress(reserving, request.pattern, held, None)

    async def _list(self, request: ListingRequest, plugins: Sequence[str] | None) -> AcceptedAnswer | None:
        """Ask the plugins, under permits that belong to the listed topics."""
        held, progress = self._held(request)
        # Each caller has a deadline of its own, and may be cancelled before this ends.
        async with self.budget.until(request.deadline), held:
            if plugins is None:
                accepted: AcceptedAnswer | None = await self._listers.of_default(progress, progress.request)
            else:
                accepted = await self._listers.of_plugins(progress, progress.request, only=plugins)
        leases = self._permits.leases
        if accepted is None or accepted.selection is None or accepted.selection.listing in leases:
            held.release(0 if accepted is None else accepted.owned)
        else:
            held.settle(accepted.owned)
            permit = held.hand_over()
            if permit is not None:
                leases.hold(accepted.selection.listing, permit)
        return accepted


def _literal(topics: Sequence[TopicName]) -> TopicsPattern:
    """A pattern that matches these topics of one domain and namespace, and no other."""
    names = sorted({re2.escape(topic.partitioned_name.local) for topic in topics})
    any_of: Any = names[0] if len(names) == 1 else f"(?:{'|'.join(names)})"
    text = f"{topics[0].domain}://{topics[0].namespace}/{any_of}"
    return compile_pattern(text, max_length=len(text))


#: Names in one column; a caller with more names asks alone.
_MOST: Final = 16 * 1024

Seen: TypeAlias = "np.ndarray[Any, Any] | None"
AsksMask: TypeAlias = Callable[[pa.LargeStringArray], Awaitable[Any | None]]


class MasksInFlight:
    """Questions by key, for one event loop: equal keys, equal answers for a name."""

    def __init__(self) -> None:
        self._runs: NextRuns[pa.LargeStringArray, Seen] = NextRuns()

    async def visible(self, key: Hashable, names: pa.LargeStringArray, ask: AsksMask) -> Seen:
        """The mask of visible names (``None``: all), by the mask that ``ask`` returns for a column.

        The answering call of ``ask`` begins after this call. Raises what ``ask`` raises.
        """
        if self._runs.waiting(key) + len(names) > _MOST:
            seen, start = await _seen(ask, [names]), 0
        else:
            seen, start = await self._runs.ask(key, partial(_seen, ask), names, len(names))
        return None if seen is None else seen[start : start + len(names)]


async def _seen(ask: AsksMask, columns: Sequence[pa.LargeStringArray]) -> Seen:
    mask = await ask(columns[0] if len(columns) == 1 else pa.concat_arrays(columns))
    return None if mask is None else mask.to_numpy(zero_copy_only=False)
