"""Questions to plugins about single topics: whether they exist, their partitions, and their listed names.

The plugins of a namespace describe its topics in the order of the chain: a plugin with ``broker_core_describe_topics``
by that hook, any other by its listing. A plugin that lists decides which topics exist; one that only describes gives
their numbers of partitions, if they exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.catalog import TopicRecord
from broker_core.concurrency import loop_turn
from broker_core.errors import ListingFailed
from broker_core.immutable import copied
from broker_core.listing import TOPIC, Details, Selection, few_topic_names, partitions_of, topic_names
from broker_core.names import PARTITION_SUFFIX, NamespaceName, TopicName
from broker_core.pipeline import AcceptedAnswer, Pipeline
from broker_core.plugin_api import ListingRequest

__all__ = ["Known", "Memo", "PluginTopics", "partition_names"]

#: Topics that are asked for by a pattern; for more, the whole namespace is listed.
_LITERAL: Final = 100
#: Names that are gathered on the event loop, and names of partitions that a mask is asked about at a time.
_FEW: Final = 1000
_MASKED: Final = 16 * 1024
#: Topics that are counted between two looks at how long this turn of the event loop has taken.
_SLICE: Final = 25
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Known(NamedTuple):
    """A topic as it is for any asker. ``partitions`` is 0 for one without, and for a partition.

    ``names`` are the names for masks, if known; ``details`` are further ones from plugins, by column. ``record`` is the
    topic of the catalogue that has the name, or that it is a partition of.
    """

    partitions: int = 0
    exists: bool = True
    names: pa.LargeStringArray | None = None
    details: Mapping[str, Any] = _NOTHING
    record: TopicRecord | None = None

    def masked(self, topic: TopicName) -> Iterator[pa.LargeStringArray]:
        """The names of which a mask has to show at least one, in columns that are not too long."""
        record, names = self.record, self.names
        if record is not None and record.name == topic and len(record.listed) <= _FEW:
            names = pa.array(list(record.names), pa.large_string())
        if not self.partitions or topic.is_system:  # no listing has names of a system topic
            yield pa.array([str(topic)], pa.large_string()) if names is None or topic.is_system else names
        elif names is not None:
            yield names
        else:
            for low in range(0, self.partitions, _MASKED):
                yield partition_names(topic, low, min(low + _MASKED, self.partitions))

    def described(self, better: Known | None) -> Known:
        """The topic with the number of partitions, and more, from a plugin that describes it."""
        if better is None or not self.exists:
            return self
        return self._replace(partitions=better.partitions, details={**self.details, **better.details})


_MISSING: Final = Known(exists=False)
Found: TypeAlias = "dict[TopicName, Known]"
#: The answers of listers to one question, which may be about more topics than are looked for at a time.
Memo: TypeAlias = "dict[tuple[tuple[str, ...] | None, frozenset[str]], AcceptedAnswer | ListingFailed | None]"


class PluginTopics:
    """Asks the plugins of one pipeline, and its default lister. Raises :exc:`~broker_core.errors.ListingFailed`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._dispatcher = pipeline.dispatcher
        self._questions = pipeline.topic_questions
        self._workers = pipeline.workers

    def concern(self, namespace: NamespaceName) -> bool:
        """Whether some plugin decides which topics exist in a namespace, or describes them."""
        return bool(self._dispatcher.describe_hook.plugins(namespace)) or self._dispatcher.masks(namespace)

    async def found(
        self,
        request: ListingRequest,
        topics: Sequence[TopicName],
        memo: Memo,
        *,
        by_hook: bool | None = None,
        answered: set[str] | None = None,
    ) -> tuple[Found | None, Found]:
        """The topics that plugins list, ``None`` if none does, and the answers of plugins that only describe.

        ``by_hook`` true: plugins are only asked to describe, and ``answered`` gets the names of plugins that did not
        pass; false: they are only asked to list, without those in ``answered``. The topics are of one namespace and
        domain.
        """
        async with self._questions.budget.until(request.deadline):
            descriptions: Found = {}
            listed = await self._listed_by_some(request, topics, memo, descriptions, by_hook, answered)
        return None if listed is None else _described(listed, descriptions), descriptions

    async def of_default_lister(
        self, request: ListingRequest, topics: Sequence[TopicName], memo: Memo
    ) -> Found:
        """The state of topics by the default lister."""
        async with self._questions.budget.until(request.deadline):
            found = await self._listed(request, topics, None, memo)
        assert found is not None  # it never passes
        return found

    async def some_visible(self, request: ListingRequest, columns: Iterable[pa.LargeStringArray]) -> bool:
        """Whether masks show some of these names."""
        async with self._questions.budget.until(request.deadline):
            for names in columns:
                seen = await self._questions.visible(request, names)
                if seen is None or seen.any():
                    return True
        return False

    async def shown(self, request: ListingRequest, topics: Sequence[tuple[TopicName, Known]]) -> list[bool]:
        """Whether masks show a name of each topic; topics with few names are asked about together."""
        shown = [False] * len(topics)
        batch: list[tuple[int, pa.LargeStringArray]] = []
        size = 0
        for number, (topic, known) in enumerate(topics):
            columns = known.masked(topic)
            names = next(columns)
            if len(names) > _FEW:
                shown[number] = await self.some_visible(request, chain([names], columns))
            else:
                batch.append((number, names))
                size += len(names)
            if batch and (size > _MASKED - _FEW or number == len(topics) - 1):
                await self._show(request, batch, shown)
                batch, size = [], 0
        return shown

    async def _show(
        self,
        request: ListingRequest,
        batch: Sequence[tuple[int, pa.LargeStringArray]],
        shown: list[bool],
    ) -> None:
        """Note which places of a batch have a name that masks show."""
        async with self._questions.budget.until(request.deadline):
            mask = await self._questions.visible(request, pa.concat_arrays([names for _, names in batch]))
        start = 0
        for number, names in batch:
            shown[number] = mask is None or bool(mask[start : start + len(names)].any())
            start += len(names)

    # -- the chain

    async def _listed_by_some(
        self,
        request: ListingRequest,
        topics: Sequence[TopicName],
        memo: Memo,
        descriptions: Found,
        by_hook: bool | None,
        answered: set[str] | None,
    ) -> Found | None:
        """Walk the chain; plugins in a row that are asked to list are asked together."""
        listers: list[str] = []
        for plugin, describes in self._dispatcher.describe_hook.plugins(request.namespace):
            if describes and by_hook is not False:
                if (found := await self._listed(request, topics, tuple(listers), memo)) is not None:
                    return found
                listers = []
                details = await self._questions.described(plugin.name, request, topics)
                if details is not None:
                    if answered is not None:
                        answered.add(plugin.name)
                    described = _of_details(details, topics)
                    if plugin.lists:
                        found = await self._as_listed(plugin.name, described, request, memo)
                        if found is not None:
                            return found
                    for topic, known in described.items():
                        if known.exists:
                            descriptions.setdefault(topic, known)
                    continue
            if not (by_hook or plugin.name in (answered or ())) and plugin.lists:
                listers.append(plugin.name)
        return await self._listed(request, topics, tuple(listers), memo)

    async def _as_listed(
        self, plugin: str, described: Found, request: ListingRequest, memo: Memo
    ) -> Found | None:
        """The topics that a plugin described, with its listed names if a mask may hide them; ``None`` if it lists
        nothing.
        """
        there = [topic for topic, known in described.items() if known.exists]
        if not there or not self._dispatcher.masks(request.namespace):
            return described
        both = list(dict.fromkeys(name for topic in there for name in (topic, topic.partitioned_name)))
        listed = await self._listed(copied(request, wants=frozenset()), both, (plugin,), memo)
        if listed is None:
            return None
        for topic in there:
            # A partition that only the number says: as its topic.
            found = listed[topic] if listed[topic].exists else listed[topic.partitioned_name]
            described[topic] = found.described(described[topic])
        return described

    async def _listed(
        self,
        request: ListingRequest,
        topics: Sequence[TopicName],
        plugins: tuple[str, ...] | None,
        memo: Memo,
    ) -> Found | None:
        """The state of topics by plugins, or by the default lister; ``None`` if all plugins pass, or there are none."""
        if plugins == ():
            return None
        accepted = await self._answer_of(request, topics, plugins, memo)
        if accepted is None:
            return None
        assert accepted.selection is not None  # the request has no hash
        rows = {} if accepted.details is None else _rows(accepted.details, topics)
        found: Found = {}
        for number, topic in enumerate(topics):
            if number and not number % _SLICE:
                await loop_turn().time()
            found[topic] = await self._in_listing(accepted.selection, topic, request, rows)
        return found

    async def _answer_of(
        self,
        request: ListingRequest,
        topics: Sequence[TopicName],
        plugins: tuple[str, ...] | None,
        memo: Memo,
    ) -> AcceptedAnswer | None:
        """The answer of listers about a few topics, or one about all topics for the whole question."""
        if len(topics) <= _LITERAL:
            return await self._questions.listed(request, topics, plugins)
        key = (plugins, request.wants)
        if key not in memo:
            try:
                memo[key] = await self._questions.listed(request, (), plugins)
            except ListingFailed as failure:
                memo[key] = failure
        found = memo[key]
        if isinstance(found, ListingFailed):
            raise found.copy() from found.__cause__
        return found

    async def _in_listing(
        self, selection: Selection, topic: TopicName, request: ListingRequest, rows: Mapping[str, Any]
    ) -> Known:
        text = str(topic)
        names = few_topic_names(selection, text)
        if names is None:
            names = await self._workers.call(request.asker, partial(topic_names, selection, text))
        partitions = partitions_of(names, text)
        if partitions is None:
            return _MISSING
        row = rows.get(text, _NOTHING)
        if row.get("partitions") is not None:
            partitions = row["partitions"]
        if not self._dispatcher.masks(topic.namespace):
            names = None
        return Known(partitions, names=names, details=row or rows.get(str(topic.partitioned_name), _NOTHING))


def partition_names(topic: TopicName, low: int, high: int) -> pa.LargeStringArray:
    """The full names of the partitions ``low`` to ``high``, without the last."""
    numbers = pa.array(range(low, high)).cast(pa.large_string())
    prefix = pa.scalar(f"{topic}{PARTITION_SUFFIX}", pa.large_string())
    return pc.binary_join_element_wise(prefix, numbers, pa.scalar("", pa.large_string()))


def _described(found: Found, descriptions: Found) -> Found:
    return (
        {topic: known.described(descriptions.get(topic)) for topic, known in found.items()}
        if descriptions
        else found
    )


def _rows(details: Details, topics: Sequence[TopicName]) -> dict[str, Mapping[str, Any]]:
    """The rows of details about topics and about the topics that they are partitions of, by full name."""
    names = pa.array({str(name) for each in topics for name in (each, each.partitioned_name)})
    shown = Details(
        details.batch.filter(pc.is_in(details.topics, value_set=names.cast(pa.large_string())))
    ).to_pylist()
    return {row[TOPIC]: {name: value for name, value in row.items() if value is not None} for row in shown}


def _of_details(details: Details, topics: Sequence[TopicName]) -> Found:
    rows = _rows(details, topics)
    found: Found = {}
    for topic in topics:
        row, base = rows.get(str(topic)), rows.get(str(topic.partitioned_name), _NOTHING)
        if row is not None:
            found[topic] = Known(row.get("partitions", 0), details=row)
        else:
            is_partition = base.get("partitions", 0) > topic.partition >= 0
            found[topic] = Known(details=base) if is_partition else _MISSING
    return found
