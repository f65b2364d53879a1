"""Finds topics for an asker: whether one exists, whether the asker may know of it, and its details.

Topics are asked for by name or by id, and each way has one order of decisions:

- by name: ACLs, rules and gates, existence, masks. A refused topic is refused whether it exists or not.
- by id: existence, masks, ACLs, rules and gates. The id of a hidden topic is answered as one that no topic has.

Plugins that list a namespace say what exists in it, then the embedded catalogue, or without one the brokers. A failure
is the answer about each topic that it concerns; it never says that a topic does not exist.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.access import Access, Asker
from broker_core.catalog import AsyncCatalog, TopicRecord, reading_catalog
from broker_core.concurrency import loop_turn
from broker_core.errors import Cause, ListingFailed
from broker_core.listing import TOPIC, Details, Selection, topic_names
from broker_core.names import PERSISTENT, NamespaceName, TopicName
from broker_core.pipeline import Pipeline, one_line_of_denials
from broker_core.plugin_api import ListingRequest
from broker_core.service.plugin_topics import Known, Memo, PluginTopics

__all__ = ["REFUSED_BY_ACLS", "Find", "Found", "TopicAsker", "client_count", "is_ordinary"]

#: Topics that are looked for at a time: a thread reads so many before others have their turn.
_READ: Final = 500
#: Topics between two looks at how long this turn of the event loop has taken.
_SLICE: Final = 25
#: Partitions that clients can count: Java and Go read their number into a signed int.
_MOST: Final = 2**31 - 1
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
#: The failure of a topic that :attr:`TopicAsker.allowed` refuses.
REFUSED_BY_ACLS: Final = ListingFailed("", cause=Cause.DENIED)


@dataclass(slots=True, kw_only=True)
class TopicAsker:
    """An asker and its right. One for each question, however many topics it names.

    Rules and gates are asked for ``action`` about each topic, or once about the namespace (``of_namespace``); ``None``
    is no right, before a change that asks itself. ``rules`` is the action for the rules, if it is another. ``allowed``
    are ACLs; ``can_have`` says which topics a protocol can have at all. ``wants`` are columns of details, for topics
    that the catalogue does not hold. ``namespace`` is the only one in which ids of persistent topics are looked for;
    ``None``: all.
    """

    asker: Asker
    action: str | None = "describe"
    rules: str | None = None
    of_namespace: bool = False
    allowed: Callable[[TopicName], bool] | None = None
    can_have: Callable[[TopicName], bool] | None = None
    wants: frozenset[str] = frozenset({"partitions"})
    deadline: float | None = None
    namespace: NamespaceName | None = None
    memo: Memo = field(default_factory=dict, repr=False, compare=False)

    def refusal(self, topic: TopicName) -> ListingFailed | None:
        """The failure of a topic that ACLs do not allow; ``None`` if they do."""
        return None if self.allowed is None or self.allowed(topic) else REFUSED_BY_ACLS

    def may_exist(self, topic: TopicName) -> bool:
        """Whether the protocol can have a topic of this name."""
        return self.can_have is None or self.can_have(topic)

    def is_about(self, topic: TopicName) -> bool:
        """Whether ids of this topic's kind are looked for."""
        only = self.namespace
        return only is None or (topic.namespace == only and topic.domain == PERSISTENT)


def is_ordinary(topic: TopicName) -> bool:
    """Whether a topic is none of the system's, whose names no listing has."""
    return not topic.is_system


class Found(NamedTuple):
    """The answer about a topic. If it neither exists nor has a ``failure``, there is no such topic for this asker.

    ``name`` is ``None`` for an id that no topic has for this asker; with a failure it is for the log alone.
    ``partitions`` is 0 for a topic without, and for a partition. ``record`` is the topic in the catalogue,
    ``details`` are those of plugins or brokers, by column.
    """

    name: TopicName | None
    exists: bool = False
    partitions: int = 0
    record: TopicRecord | None = None
    failure: ListingFailed | None = None
    details: Mapping[str, Any] = _NOTHING


class _Search:
    """The search for some topics of one namespace and domain: ``open`` are the places of undecided topics.

    ``ids`` are the ids that the topics must have.
    """

    def __init__(
        self,
        question: TopicAsker,
        topics: Sequence[TopicName],
        known: list[Known | None] | None = None,
        ids: Sequence[uuid.UUID] | None = None,
    ) -> None:
        self.question = question
        self.topics = topics
        self.known = known or [None] * len(topics)
        self.ids = ids
        self.open = list(range(len(topics)))
        self._failures: dict[int, ListingFailed] = {}

    def fail(self, failures: Mapping[int, ListingFailed]) -> None:
        """Answer these places with failures."""
        if failures:
            self._failures |= failures
            self.open = [place for place in self.open if place not in failures]

    def found(self) -> list[Found]:
        """The answers about all topics; the still open ones exist for the asker."""
        rows: dict[int, Found] = {}
        for place in self.open:
            known = self.known[place]
            assert known is not None
            rows[place] = Found(self.topics[place], True, known.partitions, known.record, None, known.details)
        if len(rows) == len(self.topics):
            return list(rows.values())
        failures = self._failures
        return [
            rows.get(place) or Found(topic, failure=failures.get(place))
            for place, topic in enumerate(self.topics)
        ]


class Find:
    """Finds topics for askers; one for a broker. ``catalog`` is ``None`` before a cluster."""

    def __init__(self, pipeline: Pipeline, catalog: AsyncCatalog | None) -> None:
        self.plugins = PluginTopics(pipeline)
        self._pipeline = pipeline
        self._catalog = catalog
        self._dispatcher = pipeline.dispatcher
        acls, rights, existence, masks = self._ask_acls, self._ask_rights, self._look, self._mask
        self._by_name: Final = (acls, rights, existence, masks)
        self._by_id: Final = (existence, masks, acls, rights)

    async def by_name(self, question: TopicAsker, topics: Sequence[TopicName]) -> list[Found]:
        """Topics of one namespace and domain, in their order; each may be a partition's name."""
        with one_line_of_denials():
            return await self._by_names(question, topics)

    async def _by_names(self, question: TopicAsker, topics: Sequence[TopicName]) -> list[Found]:
        rows: list[Found] = []
        for low in range(0, len(topics), _READ):
            await loop_turn().time()
            some = topics[low : low + _READ]
            read = await self._plain_rows(some)
            if read is None:
                rows += await self._searched(_Search(question, some), self._by_name)
                continue
            for start in range(0, len(some), _SLICE):
                await loop_turn().time()
                end = start + _SLICE
                rows += map(partial(_plain_by_name, question), some[start:end], read[start:end])
        return rows

    async def by_id(self, question: TopicAsker, ids: Sequence[uuid.UUID]) -> list[Found]:
        """Topics by their ids, in their order."""
        listed: Mapping[uuid.UUID, tuple[TopicName, Known]] | None = None
        if question.namespace is not None and self._is_listed_by_others(question.namespace):
            try:
                listed = await self._listed_ids(question, question.namespace, ids)
            except ListingFailed as failure:
                return [Found(None, failure=failure)] * len(ids)
        rows: list[Found] = []
        for low in range(0, len(ids), _READ):
            some = ids[low : low + _READ]
            found = [Found(None)] * len(some)
            try:
                known = await self._of_ids(question, some, listed)
            except ListingFailed as failure:
                found, known = [Found(None, failure=failure)] * len(some), {}
            # A search is about one namespace and domain.
            places = list(known)
            for group in [places] if question.namespace is not None else [[place] for place in places]:
                search = _Search(
                    question,
                    [known[place][0] for place in group],
                    [known[place][1] for place in group],
                    [some[place] for place in group],
                )
                for place, row in zip(group, await self._searched(search, self._by_id), strict=True):
                    if row.exists or row.failure:
                        found[place] = row
            rows += found
        return rows

    def now(
        self, question: TopicAsker, topics: Sequence[TopicName], ids: Sequence[uuid.UUID] = ()
    ) -> list[Found] | None:
        """The result of :meth:`by_name`, or for ids of :meth:`by_id`, for a few topics of the question's namespace.

        ``None`` if that takes waiting.
        """
        catalog, namespace = self._catalog, question.namespace
        if catalog is None or namespace is None or not self.is_plain(namespace):
            return None
        if not loop_turn().has_time():
            return None
        if ids:
            records = catalog.topics_by_id_now(ids)
            return None if records is None else list(map(partial(_plain_by_id, question), records))
        rows = catalog.found_now(topics)
        return None if rows is None else list(map(partial(_plain_by_name, question), topics, rows))

    async def shows(self, question: TopicAsker, written: TopicRecord) -> bool:
        """Whether :meth:`by_name` has a topic that was just written; it is not read again if nothing else decides."""
        if self.is_plain(written.name.namespace):
            found = _plain_by_name(question, written.name, (written, written.partitions))
        else:
            (found,) = await self.by_name(question, [written.name])
        return found.failure is None and found.exists

    async def partitions(self, question: TopicAsker, topic: TopicName) -> int | None:
        """The number of partitions of a topic for clients, 0 for one without; ``None`` for a missing topic.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        (found,) = await self.by_name(question, [topic])
        if found.failure is not None:
            raise found.failure
        return client_count(topic, found.partitions) if found.exists else None

    async def _searched(
        self, search: _Search, policy: Sequence[Callable[[_Search], Awaitable[None]]]
    ) -> list[Found]:
        for step in policy:
            if search.open:
                await step(search)
        return search.found()

    async def there(self, question: TopicAsker, topic: TopicName) -> Known:
        """The state of a topic for any asker, before rights and masks. Raises :exc:`ListingFailed`."""
        (known,) = await self._known(_Search(question, [topic]), [topic])
        return known

    # -- the steps of both orders

    async def _ask_acls(self, search: _Search) -> None:
        question = search.question
        if question.allowed is None:
            return
        failures = {}
        for number, place in enumerate(search.open):
            if number and not number % _SLICE:
                await loop_turn().time()
            if (refusal := question.refusal(search.topics[place])) is not None:
                failures[place] = refusal
        search.fail(failures)

    async def _ask_rights(self, search: _Search) -> None:
        """Ask rules and gates."""
        if not self._pipeline.has_guards or search.question.action is None:
            return
        question, failures = search.question, dict[int, ListingFailed]()
        for place in search.open[:1] if question.of_namespace else search.open:
            topic = search.topics[place]
            about = None if question.of_namespace else topic
            try:
                await self._pipeline.authorize(
                    Access(search.question.action, topic.namespace, about, question.asker),
                    question.deadline,
                    rules=question.rules,
                )
            except ListingFailed as failure:
                failures |= dict.fromkeys(search.open if question.of_namespace else (place,), failure)
        search.fail(failures)
        if question.of_namespace:
            search.fail(dict(self._refused_by_rules(search)))

    def _refused_by_rules(self, search: _Search) -> Iterator[tuple[int, ListingFailed]]:
        """The topics that rules refuse one by one, if gates were asked about the namespace."""
        question = search.question
        assert question.action is not None
        for place in search.open:
            topic = search.topics[place]
            try:
                self._pipeline.ask_rules(
                    Access(question.action, topic.namespace, topic, question.asker), question.rules
                )
            except ListingFailed as failure:
                yield place, failure

    async def _look(self, search: _Search) -> None:
        """Look whether the topics exist."""
        topics, question = search.topics, search.question
        if question.can_have is not None:
            search.open = [place for place in search.open if question.may_exist(topics[place])]
        places = [place for place in search.open if search.known[place] is None]
        try:
            found = await self._known(search, [topics[place] for place in places]) if places else []
        except ListingFailed as failure:
            search.fail(dict.fromkeys(places, failure))
            return
        known, ids = search.known, search.ids
        for place, each in zip(places, found, strict=True):
            # By id, another topic may have the name by now.
            is_it = ids is None or (each.record is not None and each.record.topic_id == ids[place])
            known[place] = each if is_it else None
        search.open = [place for place in search.open if (there := known[place]) is not None and there.exists]

    async def _mask(self, search: _Search) -> None:
        """Keep the topics of which masks show a name."""
        first = search.topics[0]
        if not self._dispatcher.masks(first.namespace):
            return
        known = [(search.topics[place], search.known[place]) for place in search.open]
        request = self._request(search.question, first.namespace, first.domain)
        try:
            shown = await self.plugins.shown(request, [(topic, each) for topic, each in known if each])
        except ListingFailed as failure:
            search.fail(dict.fromkeys(search.open, failure))
            return
        search.open = [place for place, seen in zip(search.open, shown, strict=True) if seen]

    # -- existence

    def is_plain(self, namespace: NamespaceName) -> bool:
        """Whether the catalogue and ACLs alone decide about a topic for an asker."""
        return not (
            self._catalog is None
            or self._pipeline.has_guards
            or self._dispatcher.describe_hook.plugins(namespace)
            or self._dispatcher.masks(namespace)
        )

    async def _plain_rows(self, topics: Sequence[TopicName]) -> list[tuple[TopicRecord | None, int]] | None:
        """The rows of the catalogue; ``None`` if not they alone count, or they cannot be read."""
        if not self.is_plain(topics[0].namespace):
            return None
        try:
            return await self._rows(topics)
        except ListingFailed:
            return None  # ACLs come first: a topic that they do not refuse fails again

    async def _rows(self, topics: Sequence[TopicName]) -> list[tuple[TopicRecord | None, int]]:
        assert self._catalog is not None
        with reading_catalog():
            return await self._catalog.found(topics)

    def _request(self, question: TopicAsker, namespace: NamespaceName, domain: str) -> ListingRequest:
        return self._pipeline.topic_questions.request(
            namespace, domain, question.asker, question.wants, question.deadline
        )

    def _is_listed_by_others(self, namespace: NamespaceName) -> bool:
        return self._catalog is None or self._dispatcher.lists(namespace)

    async def _known(self, search: _Search, topics: Sequence[TopicName]) -> list[Known]:
        """The state of topics from plugins that list them, else from the catalogue, or the brokers."""
        question, namespace = search.question, topics[0].namespace
        described: Mapping[TopicName, Known] = {}
        if self._dispatcher.describe_hook.plugins(namespace):
            request = self._request(question, namespace, topics[0].domain)
            listed, described = await self.plugins.found(request, topics, question.memo)
            if listed is not None:
                return [listed[topic] for topic in topics]
        if self._catalog is None:
            request = self._request(question, namespace, topics[0].domain)
            by_brokers = await self.plugins.of_default_lister(request, topics, question.memo)
            found = [by_brokers[topic] for topic in topics]
        else:
            rows = await self._rows(topics)
            found = [Known(number, record is not None, None, _NOTHING, record) for record, number in rows]
        if described:
            found = [
                known.described(described.get(topic)) for topic, known in zip(topics, found, strict=True)
            ]
        return found

    async def _of_ids(
        self,
        question: TopicAsker,
        ids: Sequence[uuid.UUID],
        listed: Mapping[uuid.UUID, tuple[TopicName, Known]] | None,
    ) -> dict[int, tuple[TopicName, Known | None]]:
        """The topics of ids by place, each with its known state, before it is looked for by its name."""
        if listed is not None:
            return {place: listed[each] for place, each in enumerate(ids) if each in listed}
        assert self._catalog is not None
        with reading_catalog():
            records = await self._catalog.topics_by_id(ids)
        found: dict[int, tuple[TopicName, Known | None]] = {}
        for place, record in enumerate(records):
            if record is not None and question.is_about(record.name):
                said = self._dispatcher.describe_hook.plugins(record.name.namespace)
                known = None if said else Known(record.partitions, True, None, _NOTHING, record)
                found[place] = record.name, known
        return found

    async def _listed_ids(
        self, question: TopicAsker, namespace: NamespaceName, ids: Sequence[uuid.UUID]
    ) -> Mapping[uuid.UUID, tuple[TopicName, Known]]:
        """The topics of ids, if plugins or brokers list the namespace: they may give ids with a listing alone."""
        wants = question.wants | {"partitions", "topic_id"}
        questions = self._pipeline.topic_questions
        request = questions.request(namespace, PERSISTENT, question.asker, wants, question.deadline)
        async with questions.budget.until(request.deadline):
            return await questions.detailed(
                request, partial(_with_ids, ids, self._dispatcher.masks(namespace))
            )


def client_count(topic: TopicName, partitions: int) -> int:
    """A number of partitions that clients can count. Raises :exc:`~broker_core.errors.ListingFailed` for others."""
    if partitions > _MOST:
        raise ListingFailed(
            f"Topic {topic} has a partition of index {partitions - 1}: clients count {_MOST} at most",
            cause=Cause.INTERNAL,
        )
    return partitions


def _plain_by_name(question: TopicAsker, topic: TopicName, row: tuple[TopicRecord | None, int]) -> Found:
    """Decide by name, if neither rules and gates nor masks are asked."""
    refusal, (record, partitions) = question.refusal(topic), row
    if refusal is not None or record is None or not question.may_exist(topic):
        return Found(topic, failure=refusal)
    return Found(topic, True, partitions, record)


def _plain_by_id(question: TopicAsker, record: TopicRecord | None) -> Found:
    """Decide by id, if neither rules and gates nor masks are asked: by name, for topics that exist."""
    if record is None or not question.is_about(record.name) or not question.may_exist(record.name):
        return Found(None)
    return _plain_by_name(question, record.name, (record, record.partitions))


def _with_ids(
    ids: Sequence[uuid.UUID], masked: bool, selection: Selection, details: Details
) -> dict[uuid.UUID, tuple[TopicName, Known]]:
    """The topics of a listing that have one of these ids; with their listed names, if ``masked``."""
    question = pa.array({each.bytes for each in ids if each.int}, pa.binary(16))
    rows = details.batch.filter(pc.is_in(details.column("topic_id"), value_set=question))
    found = {}
    for row in Details(rows).to_pylist():
        names = topic_names(selection, row[TOPIC]) if masked else None
        known = Known(row["partitions"], names=names, details=row)
        found[uuid.UUID(bytes=row["topic_id"])] = TopicName.parse(row[TOPIC]), known
    return found
