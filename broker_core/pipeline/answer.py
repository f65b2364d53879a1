"""The answers of the pipeline, the traces of how they came about, and the text of their questions.

Warnings about questions that select otherwise than they seem are computed here for all transports, which show them.
Whether an answer has a hash and the client's still holds, and which listing can be taken as it is, is decided here too.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias

import pyarrow as pa

from broker_core.errors import Cause, ListingFailed
from broker_core.listing import Details, Listing, Position, Selection, TopicTable
from broker_core.memory import Leases, Permit, PermitBudget
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import no_match
from broker_core.plugin_api import PROPERTY, DefaultLister, ListingRequest, TopicListingResult
from broker_core.plugins import ChainStep, Dispatcher
from broker_core.redaction import cut_short, quoted

__all__ = [
    "Answer",
    "QuestionKey",
    "QuestionText",
    "QuestionWarning",
    "QuestionWarnings",
    "RestTrace",
    "ReusableAnswer",
    "Trace",
    "bad_topics",
    "has_hash",
    "is_unchanged",
    "known_selection",
    "without_hash",
]

#: A question without its asker: namespace, mode, pattern, and the pairs of properties that select, in order.
QuestionKey: TypeAlias = tuple[str, Mode, str | None, tuple[tuple[str, str], ...]]


class QuestionWarning(NamedTuple):
    """A warning in words about a client's question.

    ``kind`` is ``pattern`` (it can match no topic of the namespace), ``properties`` (nothing selects by them) or
    ``unfiltered`` (the answer also has topics that the pattern does not match).
    """

    kind: Literal["pattern", "properties", "unfiltered"]
    text: str


@dataclass(slots=True)
class Answer:
    """One answer. ``selection`` is ``None`` if the client's hash still holds (``changed`` is false then).

    It may hold heap permits: the caller calls :meth:`release` when its bytes have left, or on any other way
    out. ``lister`` is the plugin that answered, ``catalog`` or ``upstream``; ``plan`` how the pattern was applied.
    """

    selection: Selection | None
    topics_hash: str
    filtered: bool
    lister: str
    plan: str
    permit: Permit | None = None
    #: The age in seconds, if this is a plugin's former answer in place of a failure.
    stale: float | None = None
    #: The start of the next page: a name that this asker may see; ``None`` after the last page, and without pages.
    next: Position | None = None
    #: The wanted details (``request.wants``): one row for each topic, in the order of pages.
    details: Details | None = None
    #: The table of the listing, if it was wanted, and whether it is kept under permits of its own.
    table: tuple[TopicTable, bool] | None = None
    #: The full names in the order of pages, of an answer that is a page.
    page_names: pa.LargeStringArray | None = None
    #: The default lister's listing, if the answer depends on nothing else but the pattern and the client's hash.
    source: weakref.ref[Listing] | None = None
    #: The number of topics that the client is shown, if it is not the number of names.
    shown: int | None = None
    warnings: tuple[QuestionWarning, ...] = ()
    #: Called with the release: with why the answer could not be sent, or ``None``.
    on_release: tuple[Callable[[ListingFailed | None], object], ...] = ()

    @property
    def names(self) -> pa.LargeStringArray:
        """The full names: of a page in the order of pages, else in the order of the hash."""
        if self.page_names is not None:
            return self.page_names
        return pa.array([], pa.large_string()) if self.selection is None else self.selection.names

    @property
    def changed(self) -> bool:
        return self.selection is not None

    @property
    def topics(self) -> int:
        """The number of names that are sent."""
        return 0 if self.selection is None else len(self.selection)

    @property
    def fields_size(self) -> int:
        """Bytes of the encoded names that are sent."""
        return 0 if self.selection is None else self.selection.fields_size

    def holds(self, budget: PermitBudget, leases: Leases) -> bool:
        """Whether memory of this answer, or of its listing, is of a budget."""
        if self.selection is None:
            return False
        if self.permit is not None and self.permit.count and self.permit.budget is budget:
            return True
        leased = leases.held(self.selection.listing)
        return isinstance(leased, Permit) and leased.budget is budget

    def release(self, unsent: ListingFailed | None = None) -> None:
        """Give the heap permits back; once is enough. ``unsent`` is why the client does not get the answer."""
        if self.permit is not None:
            self.permit.release()
            self.permit = None
        ends, self.on_release = self.on_release, ()
        for end in ends:
            end(unsent)


@dataclass(slots=True)
class Trace:
    """The trace of one request, for ``explain`` and the access log: filled in on demand."""

    #: When the request came, as of :func:`time.perf_counter`.
    began: float = field(default_factory=time.perf_counter)
    #: Whether somebody asks how the answer comes about, in place of the client.
    explains: bool = False
    #: Seconds for which it waited for permits.
    waited: float = 0.0

    gates: list[ChainStep] = field(default_factory=list)
    chain: list[ChainStep] = field(default_factory=list)
    masks: list[ChainStep] = field(default_factory=list)
    listed: int | None = None
    visible: int | None = None
    permits: dict[str, int] = field(default_factory=dict)
    #: False claims of plugins.
    false_claims: list[str] = field(default_factory=list)
    #: The plugins that asked for the rest of the chain, their questions and the results.
    rest: list[RestTrace] = field(default_factory=list)

    def rest_of(self, plugin: str, request: ListingRequest) -> RestTrace:
        """Record one question of ``plugin`` to the rest of the chain."""
        properties = dict(request.properties)
        self.rest.append(
            RestTrace(plugin=plugin, topics_pattern=request.topics_pattern, properties=properties)
        )
        return self.rest[-1]


@dataclass(slots=True)
class RestTrace(Trace):
    """The trace of one ``request.rest()`` of a plugin."""

    plugin: str = ""
    topics_pattern: str | None = None
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class QuestionText:
    """The parts of a question, of any length and unchecked. An unreadable part is ``None``.

    ``properties`` is read once at the most.
    """

    namespace: str | None
    mode: str | None = None
    pattern: str | None = None
    properties: Iterable[tuple[str, str]] = ()
    page_limit: int | None = None

    @classmethod
    def of(cls, request: ListingRequest, topics_pattern: str | None = None) -> QuestionText:
        """The text of a request; ``topics_pattern`` is a pattern that the request does not have yet."""
        return cls(
            str(request.namespace),
            request.mode.name,
            request.topics_pattern if topics_pattern is None else topics_pattern,
            request.properties.items(),
            None if request.page is None else request.page.limit,
        )


@dataclass(slots=True)
class ReusableAnswer:
    """The facts of an answer without its topics. ``question`` is without its asker.

    ``listing`` is the last listing for which it was right, by a weak reference. ``warnings`` are the question's, once
    they were looked for.
    """

    question: ListingRequest
    listing: weakref.ref[Listing]
    topics_hash: str
    topics: int
    fields_size: int
    filtered: bool
    changed: bool
    plan: str
    warnings: tuple[QuestionWarning, ...] | None = None
    #: The key of its question's count: made once, since it is counted for each watcher that asks.
    key: QuestionKey = field(init=False)
    #: Always ``None``: it is no former answer, and shows all of its topics (see :class:`Answer`).
    stale: ClassVar[None] = None
    shown: ClassVar[None] = None

    def __post_init__(self) -> None:
        question = self.question
        self.key = str(question.namespace), question.mode, question.topics_pattern, ()

    @classmethod
    def of(cls, request: ListingRequest, answer: Answer) -> ReusableAnswer | None:
        """The reusable part of an answer; ``None`` if it depends on more than the listing, the pattern and the
        client's hash.
        """
        if answer.source is None or request.properties:
            return None
        return cls(
            ListingRequest(request.namespace, request.mode, request.pattern),
            answer.source,
            answer.topics_hash,
            answer.topics,
            answer.fields_size,
            answer.filtered,
            answer.changed,
            answer.plan,
        )


#: Properties that are named.
_MOST_NAMED: Final = 5
_NAMED: Final = 40  # characters of each


@dataclass(slots=True, eq=False)
class QuestionWarnings:
    """Finds the warnings about questions; one for a pipeline."""

    _lister: DefaultLister
    _dispatcher: Dispatcher

    def of(self, request: ListingRequest, *, filtered: bool, topics: int) -> tuple[QuestionWarning, ...]:
        """The warnings about a question whose answer has ``topics`` names; most questions cost next to nothing."""
        # A match of the pattern shows that it can match, whatever its lister takes for a match.
        unmatched = request.pattern is not None and not (filtered and topics)
        if not unmatched and not request.properties:
            return ()
        return tuple(self._found(request, filtered=filtered, unmatched=unmatched))

    def _found(
        self, request: ListingRequest, *, filtered: bool, unmatched: bool
    ) -> Iterator[QuestionWarning]:
        pattern = request.pattern
        if pattern is not None and unmatched:
            text = no_match(pattern, request.namespace)
            if text is not None:
                yield QuestionWarning("pattern", text)
            if not filtered:
                reason = cut_short(pattern.reason) if pattern.reason else "patterns.evaluate is false"
                yield QuestionWarning(
                    "unfiltered",
                    f"this server does not apply the topics pattern {quoted(pattern.raw)} ({reason}): topics that do "
                    "not match it are for the client to leave out",
                )
        if request.properties:
            read = self._read(request.namespace)
            unread = [] if read is None else sorted(key for key in request.properties if key not in read)
            if unread:
                named = ", ".join(repr(key[:_NAMED]) for key in unread[:_MOST_NAMED])
                more = f" and {len(unread) - _MOST_NAMED} more" if len(unread) > _MOST_NAMED else ""
                yield QuestionWarning(
                    "properties",
                    f"no topic of {request.namespace} is selected by the property {named}{more}: the answer is the one "
                    "without it (catalog.property_keys and plugins say which properties select)",
                )

    def _read(self, namespace: NamespaceName) -> frozenset[str] | None:
        """The properties that the default lister and the plugins of a namespace select by; ``None`` for any."""
        words, plugins = self._lister.depends_on, self._dispatcher.selecting_properties(namespace)
        if "properties" in words or plugins is None:
            return None
        return plugins | {word.removeprefix(PROPERTY) for word in words if word.startswith(PROPERTY)}


def bad_topics(what: str, plugin: str | None = None) -> ListingFailed:
    """The fault of an answer, as a verb with its object; the caller puts the plugin's name in front,
    unless ``plugin`` is given.
    """
    return ListingFailed(what, cause=Cause.PLUGIN, reason="bad_topics", plugin=plugin)


def known_selection(result: TopicListingResult, request: ListingRequest) -> Selection | None:
    """The selection of an answer that is already a listing (checked when it was built), else ``None``.

    Raises :exc:`ListingFailed` if it is of another namespace or mode.
    """
    topics = result.topics
    # By their exact types: a subclass may override anything.
    selection = topics.all() if type(topics) is Listing else topics
    if type(selection) is not Selection:
        return None
    listing = selection.listing
    # A listing of one domain is a part of all; its order is the same.
    if listing.namespace != request.namespace or request.mode not in (listing.mode, Mode.ALL):
        raise bad_topics(
            f"returned a listing of {listing.namespace} {listing.mode.name} to a question about "
            f"{request.namespace} {request.mode.name}",
        )
    return selection


def has_hash(request: ListingRequest) -> bool:
    """Whether the answer has a hash: one of all names, and of nothing but names."""
    return request.page is None and not request.wants


def without_hash(request: ListingRequest) -> ListingRequest:
    """The request without the client's hash, for a lister that must not compare it."""
    return request if request.topics_hash is None else replace(request, topics_hash=None)


def is_unchanged(request: ListingRequest, topics_hash: str) -> bool:
    """Whether the client's hash still holds, so that no names are sent."""
    return topics_hash == request.topics_hash
