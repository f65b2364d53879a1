"""One topic by its name: does it exist, how many partitions has it, and may this asker see it?

The listers of a namespace describe its topics, in the order of the chain: a plugin by ``broker_core_describe_topics``
where it has that hook, otherwise by its listing. A lister whose answers do not depend on the pattern is asked for the
whole namespace, and concurrent requests share its answer; any other lister is asked for the one topic, by a literal
pattern. The catalogue comes last. Upstream brokers are asked elsewhere.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import re2

from broker_core.access.asker import Asker
from broker_core.immutable.copies import copied
from broker_core.listing.details import Details
from broker_core.listing.listing import Listing, Selection
from broker_core.listing.names_of_topic import count_partitions, topic_names
from broker_core.memory.estimates import Estimates
from broker_core.memory.permits import Permits
from broker_core.names import PERSISTENT, Mode, TopicName
from broker_core.names.partition_suffix import PARTITION_SUFFIX
from broker_core.patterns import compile_pattern
from broker_core.pipeline.held_permit import HeldPermit
from broker_core.pipeline.in_flight import NextRuns
from broker_core.pipeline.in_flight_masks import MasksInFlight
from broker_core.pipeline.listing_details import ListingDetails
from broker_core.pipeline.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.options import PipelineOptions
from broker_core.pipeline.steps import sizes_of, unknown_size
from broker_core.pipeline.time_budget import TimeBudget
from broker_core.pipeline.verification.bad_topics import bad_topics
from broker_core.pipeline.verification.verify_names import known_selection
from broker_core.pipeline.worker_threads import Workers
from broker_core.plugin_api.depends_on import key_of
from broker_core.plugin_api.describe_request import DescribeRequest
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import DefaultLister
from broker_core.plugins import Dispatcher, LoadedPlugin

__all__ = ["Topic", "TopicsByName", "partition_names"]

_WANTS: Final = frozenset({"partitions"})
#: Topics that are remembered of all listings together: some 10 MB.
_REMEMBERED: Final = 40_000
#: Names of partitions that a mask is asked about at a time.
_MASKED: Final = 16 * 1024
#: Names that are gathered on the event loop.
_FEW: Final = 1000


@dataclass(frozen=True, slots=True)
class Topic:
    """What is known of a topic; ``exists`` is false where the lister of its namespace does not list it."""

    partitions: int
    exists: bool = True
    #: The names that it is listed by, where it was found in a listing and a plugin masks the namespace.
    names: pa.LargeStringArray | None = None
    #: False where only a plugin that does not list the namespace knows it: whether it exists is for others to say.
    listed: bool = True


_MISSING: Final = Topic(0, exists=False)


class TopicsByName:
    """Finds topics by name; one for a pipeline. ``ask`` asks the plugins of these names to list, in their order."""

    def __init__(
        self,
        lister: DefaultLister,
        dispatcher: Dispatcher,
        permits: Permits,
        workers: Workers,
        detailing: ListingDetails,
        options: PipelineOptions,
        ask: Callable[..., Awaitable[AcceptedAnswer | None]],
    ) -> None:
        self._lister = lister
        self._dispatcher = dispatcher
        self._permits = permits
        self._workers = workers
        self._detailing = detailing
        self._budget = TimeBudget.of_lookups(options.time_budget)
        self._ask = ask
        self._estimates = Estimates()
        self._listings: NextRuns[None, AcceptedAnswer | None] = NextRuns()
        self._masks = MasksInFlight()
        self._known: weakref.WeakKeyDictionary[Listing, dict[str, int]] = weakref.WeakKeyDictionary()

    def concerns(self, topic: TopicName) -> bool:
        """Whether some plugin has a say about what there is in the topic's namespace."""
        namespace = topic.namespace
        return bool(self._dispatcher.describe_hook.plugins(namespace)) or self._dispatcher.masks(namespace)

    def is_listed_by_plugins(self, topic: TopicName) -> bool:
        """Whether some plugin lists the topic's namespace, as far as is known before it is asked."""
        return self._dispatcher.lists(topic.namespace)

    def listed_now(self, topic: TopicName, asker: Asker) -> Topic | None:
        """A topic as the default lister lists it, if it takes no waiting; ``None`` otherwise.

        And of a system topic that is not listed: no listing has these, whether they exist or not.
        """
        request = ListingRequest(topic.namespace, _mode(topic), asker=asker)
        result = self._lister.list_now(request)
        selection = None if result is None else known_selection(result, request)
        if selection is None:
            return None
        partitions = self._partitions(selection, str(topic))
        if partitions is None:
            return None if topic.is_system else _MISSING
        return Topic(partitions)

    async def topic(
        self, topic: TopicName, asker: Asker, *, by_hook: bool | None = None, answered: set[str] | None = None
    ) -> Topic | None:
        """What plugins say of a topic; ``None`` where no plugin lists its namespace.

        ``by_hook`` true: plugins are only asked to describe it, and ``answered`` gets the names of those that did not
        pass; false: they are only asked to list, without those in ``answered``. Raises :exc:`ListingFailed`.
        """
        deadline = self._budget.deadline()
        async with self._budget.until(deadline):
            return await self._of_plugins(topic, asker, deadline, by_hook, answered)

    async def of_default_lister(self, topic: TopicName, asker: Asker, told: Topic | None = None) -> Topic:
        """The same of what the default lister lists. ``told`` is what plugins said that do not list."""
        deadline = self._budget.deadline()
        request = ListingRequest(topic.namespace, _mode(topic), asker=asker, deadline=deadline)
        async with self._budget.until(deadline):
            result = await self._lister.list_topics(request)
        selection = known_selection(result, request)
        assert selection is not None  # the catalogue has nothing but listings
        return _with(await self._found(selection, topic, asker), told)

    async def is_visible(self, topic: TopicName, asker: Asker, known: Topic | None) -> bool:
        """Whether some name that the topic is listed by may be seen, as far as masks do not depend on properties.

        ``known`` is what :meth:`topic` gave; without it, it is about the name alone. Raises :exc:`ListingFailed`.
        """
        if not self._dispatcher.masks(topic.namespace):
            return True
        if known is not None and known.names is not None:
            return await self.some_visible(topic, asker, known.names)
        if known is None or not known.partitions:
            return await self.some_visible(topic, asker, pa.array([str(topic)], pa.large_string()))
        for low in range(0, known.partitions, _MASKED):
            names = partition_names(topic, low, min(low + _MASKED, known.partitions))
            if await self.some_visible(topic, asker, names):
                return True
        return False

    async def some_visible(self, topic: TopicName, asker: Asker, names: pa.LargeStringArray) -> bool:
        """Whether one of these names in the namespace of ``topic`` may be seen."""
        deadline = self._budget.deadline()
        request = ListingRequest(topic.namespace, _mode(topic), asker=asker, deadline=deadline)
        ask = partial(self._dispatcher.mask_hook.visible, request, by_name=True)
        async with self._budget.until(deadline):
            while True:
                words = self._dispatcher.mask_hook.depends_on(topic.namespace)
                seen = await self._masks.some_visible(key_of(request, words), names, ask)
                if words == self._dispatcher.mask_hook.depends_on(topic.namespace):
                    return seen
                # A mask has read what it does not declare: the verdict may be about another asker.

    # -- asking

    async def _of_plugins(
        self,
        topic: TopicName,
        asker: Asker,
        deadline: float,
        by_hook: bool | None,
        answered: set[str] | None,
    ) -> Topic | None:
        """Walk the chain; plugins in a row that are asked to list are asked together."""
        told: Topic | None = None  # by a plugin that does not list
        listers: list[LoadedPlugin] = []
        for plugin, describes in self._dispatcher.describe_hook.plugins(topic.namespace):
            if describes and by_hook is not False:
                if (found := await self._listed(topic, asker, listers, deadline)) is not None:
                    return _with(found, told)
                listers = []
                described = await self._described(plugin, topic, asker, deadline)
                if described is not None:
                    if answered is not None:
                        answered.add(plugin.name)
                    found = await self._as_listed(plugin, described, topic, asker, deadline)
                    if found.listed:
                        return _with(found, told)
                    told = told or (found if found.exists else None)
                    continue
            if by_hook or plugin.name in (answered or ()) or not plugin.lists:
                continue
            listers.append(plugin)
        found = await self._listed(topic, asker, listers, deadline)
        return told if found is None else _with(found, told)

    async def _as_listed(
        self, plugin: LoadedPlugin, described: Topic, topic: TopicName, asker: Asker, deadline: float
    ) -> Topic:
        """What a plugin described, by its listed names where a mask may hide them."""
        if not plugin.lists:
            return copied(described, listed=False)
        if not described.exists or not self._dispatcher.masks(topic.namespace):
            return described
        found = await self._listed(topic, asker, [plugin], deadline, frozenset())
        if found is None:  # it passes where it is asked to list
            return copied(described, listed=False)
        if (
            not found.exists and topic.partition >= 0
        ):  # a partition that is told by the number alone: as its topic
            found = (
                await self._listed(topic.partitioned_name, asker, [plugin], deadline, frozenset()) or found
            )
        return _with(found, described)

    async def _described(
        self, plugin: LoadedPlugin, topic: TopicName, asker: Asker, deadline: float
    ) -> Topic | None:
        """What a plugin's ``broker_core_describe_topics`` says."""
        base = topic.partitioned_name
        names = [str(topic)] if base is topic else [str(topic), str(base)]
        held = HeldPermit(self._permits, self._estimates.of(topic.namespace, (topic.namespace, plugin.name)))
        question = DescribeRequest(
            topic.namespace, asker, pa.array(names, pa.large_string()), None, _WANTS, deadline, held
        )
        progress = ListingInProgress(
            ListingRequest(topic.namespace, asker=asker, deadline=deadline), None, held, None
        )
        accept = partial(self._accepted, progress, question)
        async with held:
            details = await self._dispatcher.describe_hook.details(plugin.name, question, accept)
        held.release()
        return None if details is None else _of_details(details, topic)

    async def _accepted(
        self, progress: ListingInProgress, question: DescribeRequest, details: Details
    ) -> Details:
        if "partitions" not in details.columns:
            raise bad_topics("gave details without the column 'partitions', which was asked for")
        return await self._detailing.accepted(progress, question, details)

    async def _listed(
        self,
        topic: TopicName,
        asker: Asker,
        listers: Collection[LoadedPlugin],
        deadline: float,
        wants: frozenset[str] = _WANTS,
    ) -> Topic | None:
        """What plugins list, one after the other; ``None`` where all of them pass, or there are none."""
        if not listers:
            return None
        depends_on = self._words(topic)
        literal = "pattern" in depends_on
        pattern = None
        if literal:
            text = f"{topic.domain}://{topic.namespace}/{re2.escape(topic.partitioned_name.local)}"
            pattern = compile_pattern(text, max_length=len(text))
        request = ListingRequest(
            topic.namespace, _mode(topic), pattern, asker=asker, deadline=deadline, wants=wants
        )
        names = tuple(plugin.name for plugin in listers)
        while True:
            key = key_of(request, depends_on, names, wants)
            accepted, _ = await self._listings.ask(key, lambda _: self._list(request, names), None)
            known, depends_on = depends_on, self._words(topic)
            if known == depends_on:
                break
            # A plugin has read what it does not declare: this may be an answer to another asker.
        if accepted is None:
            return None
        assert accepted.selection is not None  # the request has no hash
        return await self._found(accepted.selection, topic, asker, accepted.details)

    def _words(self, topic: TopicName) -> frozenset[str]:
        """What all that may say something of the topic depend on, as far as is known."""
        plugins = self._dispatcher.describe_hook.plugins(topic.namespace)
        return frozenset().union(*(self._dispatcher.dependencies.of(plugin.name) for plugin, _ in plugins))

    async def _list(self, request: ListingRequest, names: Collection[str]) -> AcceptedAnswer | None:
        """Ask these plugins, under permits that go with what they listed."""
        sizes = sizes_of(self._lister, request.namespace, request.asker)
        question = (sizes, request.mode, request.topics_pattern)
        estimate = self._estimates.of(sizes, question, unknown_size(self._permits))
        held = HeldPermit(self._permits, estimate, request.asker.connection)
        progress = ListingInProgress(copied(request, reserve_bytes=held.reserve), request.pattern, held, None)
        # Each caller has a deadline of its own, and may be cancelled before this ends.
        async with self._budget.until(request.deadline), held:
            accepted = await self._ask(progress, progress.request, only=names)
        leases = self._permits.leases
        if accepted is None or accepted.selection is None or accepted.selection.listing in leases:
            held.release(0 if accepted is None else accepted.owned)
        else:
            held.settle(accepted.owned)
            permit = held.hand_over()
            if permit is not None:
                leases.hold(accepted.selection.listing, permit)
        return accepted

    # -- finding

    async def _found(
        self, selection: Selection, topic: TopicName, asker: Asker, details: Details | None = None
    ) -> Topic:
        text = str(topic)
        partitions = self._partitions(selection, text)
        if partitions is None:
            return _MISSING
        if details is not None and "partitions" in details.columns:
            row = pc.index(details.topics, pa.scalar(text, pa.large_string())).as_py()
            if row >= 0:
                partitions = details.column("partitions")[row].as_py()
        if not self._dispatcher.masks(topic.namespace):
            return Topic(partitions)
        find = partial(topic_names, selection, text)
        return Topic(partitions, names=await self._workers.call(asker, find, quick=partitions <= _FEW))

    def _partitions(self, selection: Selection, topic: str) -> int | None:
        """How many partitions a topic has by its names; remembered with a listing that is asked whole."""
        if not selection.is_whole:
            return count_partitions(selection, topic)
        known = self._known.get(selection.listing, {})
        if topic in known:
            return known[topic]
        found = count_partitions(selection, topic)
        if found is not None:  # of what is not there clients may ask without end
            if sum(map(len, self._known.values())) >= _REMEMBERED:
                self._known.clear()
            self._known.setdefault(selection.listing, {})[topic] = found
        return found


def partition_names(topic: TopicName, low: int, high: int) -> pa.LargeStringArray:
    """The full names of the partitions ``low`` to ``high``, without the last."""
    numbers = pa.array(range(low, high)).cast(pa.large_string())
    prefix = pa.scalar(f"{topic}{PARTITION_SUFFIX}", pa.large_string())
    return pc.binary_join_element_wise(prefix, numbers, pa.scalar("", pa.large_string()))


def _with(found: Topic, told: Topic | None) -> Topic:
    """A topic as it is listed, with the number of partitions from a better source."""
    return found if told is None or not found.exists else copied(found, partitions=told.partitions)


def _of_details(details: Details, topic: TopicName) -> Topic:
    rows: dict[str, Any] = {row["topic"]: row["partitions"] for row in details.to_pylist()}
    if str(topic) in rows:
        return Topic(rows[str(topic)])
    if rows.get(str(topic.partitioned_name), 0) > topic.partition >= 0:
        return Topic(0)
    return _MISSING


def _mode(topic: TopicName) -> Mode:
    return Mode.PERSISTENT if topic.domain == PERSISTENT else Mode.NON_PERSISTENT
