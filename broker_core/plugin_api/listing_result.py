"""The answer of one lister: pass through, success, or unchanged (PIP-452's ``TopicListingResult``, completed)."""

from __future__ import annotations

import enum
import weakref
from collections.abc import AsyncIterable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Final, NoReturn, Protocol, TypeAlias

import pyarrow as pa

from broker_core.access import Asker, Refused
from broker_core.counted import counted
from broker_core.errors import Cause
from broker_core.listing import Details, Listing, Position, Selection
from broker_core.memory import MANY, free_with
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.plugin_api.describe_request import DescribeRequest
from broker_core.plugin_api.listing_request import ListingRequest

__all__ = [
    "AnswerKind",
    "DefaultLister",
    "ListerNotes",
    "PolledLister",
    "TopicListingResult",
    "Topics",
    "check_result",
]

#: Full topic names as a lister may hand them over.
Topics: TypeAlias = "Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any] | Listing | Selection"


class AnswerKind(enum.Enum):
    """The kinds of answers of a lister; the values are the words of ``explain`` and of the metrics."""

    PASS_THROUGH = "pass_through"
    SUCCESS = "success"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


class TopicListingResult:
    """The answer of a lister; immutable.

    Made by :meth:`success`, :meth:`pass_through`, :meth:`unchanged` and :meth:`refused` only.

    ``topics`` are full names; ``filtered`` claims that all of them match the request's pattern; ``topics_hash`` is the
    lister's own hash of exactly these topics (used only if nothing is filtered after it); ``version`` names the state
    that was listed: equal versions mean equal answers to one question, and only an answer with a version is cached.
    ``owned`` says that ``topics`` is a listing made for this request alone, whose memory counts as this request's until
    its answer has left. ``details`` are what is known of the topics besides their names; ``next`` says that ``topics``
    are the wanted page, and gives the start of the next one. ``refusal`` is the message for the client if the lister
    refuses. ``why`` is why it passes, for ``explain``.
    """

    __slots__ = (
        "__weakref__",
        "details",
        "filtered",
        "kind",
        "next",
        "owned",
        "refusal",
        "topics",
        "topics_hash",
        "version",
        "why",
    )

    kind: AnswerKind
    topics: Topics
    filtered: bool
    topics_hash: str | None
    version: str | int | None
    owned: bool
    details: Details | None
    next: Position | None
    refusal: Refused | None
    why: str | None

    def __init__(self) -> None:
        raise TypeError(
            "use TopicListingResult.success(...), .pass_through(), .unchanged(...) or .refused(...)"
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        # An answer is checked when it is made, and must not change afterwards.
        raise AttributeError(
            f"a TopicListingResult cannot be changed: give {name} to TopicListingResult.success(...)"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a TopicListingResult cannot be changed")

    @classmethod
    def _make(
        cls,
        kind: AnswerKind,
        topics: Topics = (),
        filtered: bool = False,
        topics_hash: str | None = None,
        version: str | int | None = None,
        owned: bool = False,
        details: Details | None = None,
        next: Position | None = None,  # noqa: A002 - the contract's
        refusal: Refused | None = None,
        why: str | None = None,
    ) -> TopicListingResult:
        result = object.__new__(cls)
        values = (kind, topics, filtered, topics_hash, version, owned, details, next, refusal, why)
        for put, value in zip(_SETTERS, values, strict=True):
            put(result, value)
        return result

    @classmethod
    def pass_through(cls, why: str | None = None) -> TopicListingResult:
        """This lister does not take the request: the next one is asked (the same as returning ``None``).

        ``why`` is what ``explain`` says about it, to operators and over HTTP: it has no secrets.
        """
        if why is not None and not isinstance(why, str):
            raise TypeError(f"why must be a string, not {type(why).__name__}")
        return cls._make(AnswerKind.PASS_THROUGH, why=_own(why))

    @classmethod
    def success(
        cls,
        topics: Topics,
        filtered: bool = False,
        *,
        topics_hash: str | None = None,
        version: str | int | None = None,
        owned: bool = False,
        details: pa.RecordBatch | Details | None = None,
        next: Position | None = None,  # noqa: A002 - the contract's
    ) -> TopicListingResult:
        """Answer with ``topics``; no further lister is asked. An empty sequence means that there are none.

        Raises :exc:`ValueError` for ``None``, and :exc:`TypeError` for an object that cannot be topics (a plain string,
        say) and for an argument of another type; the message says what to write instead.
        """
        if topics is None:
            raise ValueError("Topics list cannot be null in success result")
        if not isinstance(topics, _COLUMNS):
            if isinstance(topics, _NO_NAMES) or not isinstance(topics, Sequence):
                raise TypeError(
                    "topics must be a list or tuple of full names, an Arrow string array or a broker_core.Listing, "
                    f"not {type(topics).__name__}: {_instead(topics)}"
                )
            if type(topics) is not list and type(topics) is not tuple:
                topics = tuple(topics)  # a sequence of any making is read here, in its plugin's own time
        if not isinstance(filtered, bool):
            raise TypeError(f"filtered must be a bool, not {type(filtered).__name__}")
        if not isinstance(owned, bool):
            raise TypeError(f"owned must be a bool, not {type(owned).__name__}")
        if topics_hash is not None and not isinstance(topics_hash, str):
            raise TypeError(f"topics_hash must be a string, not {type(topics_hash).__name__}")
        if version is not None and (isinstance(version, bool) or not isinstance(version, str | int)):
            raise TypeError(
                f"version must be a string or an integer, not {type(version).__name__}: write str(version)"
            )
        if details is not None and type(details) is not Details:
            details = Details(details)
        if next is not None and type(next) is not Position:
            raise TypeError(f"next must be a broker_core.Position or None, not {type(next).__name__}")
        result = cls._make(
            AnswerKind.SUCCESS, topics, filtered, _own(topics_hash), _own(version), owned, details, next
        )
        if isinstance(topics, _LISTS) and len(topics) >= MANY:
            free_with(result, topics)
        return result

    @classmethod
    def unchanged(cls, topics_hash: str) -> TopicListingResult:
        """Answer that the topics still have the hash that the request carries; legal only if it carries
        ``topics_hash``.
        """
        if not isinstance(topics_hash, str) or not topics_hash:
            raise ValueError(
                "unchanged() needs the topics hash that the request carries: write "
                "TopicListingResult.unchanged(request.topics_hash) if that is not None"
            )
        return cls._make(AnswerKind.UNCHANGED, topics_hash=_own(topics_hash))

    @classmethod
    def refused(cls, message: str, cause: Cause = Cause.DENIED) -> TopicListingResult:
        """The listing is refused, and no further lister is asked: the client gets ``message`` with the cause's code.

        It is final: no other lister is asked and no former answer is taken, whatever ``on_failure`` says; and it is no
        failure of this plugin. Raises :exc:`TypeError` or :exc:`ValueError` as
        :class:`~broker_core.access.asker.Refused`.
        """
        return cls._make(AnswerKind.REFUSED, refusal=Refused(message, cause))

    @property
    def is_pass_through(self) -> bool:
        return self.kind is AnswerKind.PASS_THROUGH

    def __repr__(self) -> str:
        if self.kind is AnswerKind.SUCCESS:
            return f"TopicListingResult.success(<{counted(len(self.topics), 'topic')}>, filtered={self.filtered})"
        if self.kind is AnswerKind.UNCHANGED:
            return f"TopicListingResult.unchanged({self.topics_hash!r})"
        if self.refusal is not None:
            return f"TopicListingResult.refused({self.refusal.message!r}, {self.refusal.cause})"
        return "TopicListingResult.pass_through()"


#: The setters of the fields, in the order of their annotations.
_SETTERS: Final = [vars(TopicListingResult)[name].__set__ for name in TopicListingResult.__annotations__]
#: Types of topics that are taken as they are. Tuples: a union would be made anew for each answer.
_COLUMNS = (Listing, Selection, pa.Array, pa.ChunkedArray)
_LISTS = (list, tuple)
_EXACT = (Listing, Selection, list, tuple)
_ARRAYS = (pa.Array, pa.ChunkedArray)
#: Sequences, but not of names.
_NO_NAMES = (str, bytes, bytearray, memoryview, range)


def _own(value: Any) -> Any:
    """The characters or the value of a subclass of string or number, whose own methods may return anything."""
    if value is None or type(value) is str or type(value) is int:
        return value
    return str.__str__(value) if isinstance(value, str) else index(value)


def check_result(result: TopicListingResult) -> None:
    """Raise a :exc:`TypeError` for a field that was written since the answer was made, and is of another type now."""
    kind, topics, details = result.kind, result.topics, result.details
    fits = (
        (type(kind) is AnswerKind, "kind"),
        (type(topics) in _EXACT or isinstance(topics, _ARRAYS), "topics"),
        (type(result.filtered) is bool, "filtered"),
        (result.topics_hash is None or type(result.topics_hash) is str, "topics_hash"),
        (result.version is None or type(result.version) in (str, int), "version"),
        (type(result.owned) is bool, "owned"),
        (details is None or type(details) is Details, "details"),
        (result.next is None or type(result.next) is Position, "next"),
        (result.why is None or type(result.why) is str, "why"),
    )
    for fit, name in fits:
        if not fit:
            raise TypeError(f"the field {name} of its answer was changed to something else")


def _instead(topics: object) -> str:
    """The advice what to write in place of an object that cannot be topics."""
    if isinstance(topics, str):
        return "write [topic] for one topic, or topics.splitlines() for one on each line"
    if isinstance(topics, bytes | bytearray | memoryview):
        return "write [bytes(topic).decode()] for one topic"
    if isinstance(topics, pa.Scalar):
        return "write [topic.as_py()] for one topic"
    if isinstance(topics, pa.Table | pa.RecordBatch):
        return "write the column of the names, topics.column(0) say"
    if hasattr(topics, "tolist"):  # numpy, pandas
        return "write topics.tolist()"
    if isinstance(topics, AsyncIterable):
        return "write [topic async for topic in topics]"
    if isinstance(topics, Iterable) and not isinstance(topics, range):
        return "write list(topics)"
    return "write [] if there are none, or pass_through() to leave the question to the next lister"


@dataclass(frozen=True, slots=True)
class ListerNotes:
    """Notes about the source of topics: its snapshot, if there is one, and in words what is amiss."""

    snapshot: Mapping[str, object] | None = None
    warnings: tuple[str, ...] = ()


class PolledLister:
    """Base of listers that report no changes: followers ask again from time to time."""

    def place(self, namespace: NamespaceName, asker: Asker) -> Hashable | None:  # noqa: ARG002
        """The namespace: all clients have one listing of it."""
        return namespace

    def follow(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> Callable[[], None]:  # noqa: ARG002
        """Keep nothing current."""
        return _nothing

    def is_up_to_date(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> bool:  # noqa: ARG002
        """True: changes are known only by looking."""
        return True

    def period(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> float | None:  # noqa: ARG002
        """``None``: followers look by themselves."""
        return None

    def gave(self, namespace: NamespaceName, topics_hash: str) -> None:
        """Do nothing: each answer is of the moment of its question."""

    async def catch_up(self, request: ListingRequest) -> None:
        """Do nothing: no answer is older than its question."""

    def notes(self, request: ListingRequest) -> ListerNotes:  # noqa: ARG002
        """No notes."""
        return ListerNotes()


def _nothing() -> None:
    """Do nothing: there is no watch to end."""


class DefaultLister(Protocol):
    """The lister that answers if no plugin does: the catalogue, or the brokers upstream."""

    @property
    def name(self) -> str:
        """The name in ``explain`` and the metrics: ``catalog`` or ``upstream``."""

    @property
    def depends_on(self) -> frozenset[str]:
        """The words of what its answers depend on; see :mod:`~broker_core.plugin_api.depends_on`."""

    def list_now(
        self, request: ListingRequest, applied: TopicsPattern | None = None
    ) -> TopicListingResult | None:
        """The answer if it takes no waiting at all (a snapshot in memory that is current), else ``None``.

        ``applied`` is a pattern that the caller applies to the answer: then it may be of an older version, if the same
        topics match the pattern in it.
        """

    def still_valid(
        self, request: ListingRequest, applied: TopicsPattern | None, listing: weakref.ref[Listing]
    ) -> Listing | None:
        """The answer of :meth:`list_now`, if an answer made from the earlier ``listing`` is right now too.

        ``applied`` is the pattern that was applied to the earlier answer. The request has no properties. ``None`` if
        the answer may have changed.
        """

    async def list_topics(self, request: ListingRequest) -> TopicListingResult:
        """The answer, never a pass through; fails with :exc:`~broker_core.errors.ListingFailed`."""

    def place(self, namespace: NamespaceName, asker: Asker) -> Hashable | None:
        """The place of the listing of a namespace that this client's answers are made of: in each mode, clients with
        equal places have one listing, which changes for all of them at once. ``None``: no listing is held.
        """

    def follow(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> Callable[[], None]:
        """Keep the listing that this client is given current though nobody asks, until the returned function is called.

        Changes are reported by the notices of changed topics. A lister that sees a change only if it looks may do
        nothing: followers look too.
        """

    def is_up_to_date(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> bool:
        """Whether a client that follows a namespace has its current listing once it got all changes so far.

        That listing is no older than an answer may be, and the client may still have it.
        """

    def period(self, namespace: NamespaceName, mode: Mode, asker: Asker) -> float | None:
        """Seconds after which a client that follows has a change at the latest, if the lister reports none itself.

        ``None``: changes are reported as they come. Infinite: only clients that ask see them.
        """

    def gave(self, namespace: NamespaceName, topics_hash: str) -> None:
        """Note that a client has an answer with this hash about the namespace, from whichever lister."""

    async def catch_up(self, request: ListingRequest) -> None:
        """Give no answer from now on that is older than the listing with the client's hash, which may be from
        elsewhere.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """

    def notes(self, request: ListingRequest) -> ListerNotes:
        """Notes for ``explain`` about the source of an answer."""

    async def describe(self, request: DescribeRequest) -> Details | None:
        """Details of the given topics that exist; ``None``: the lister knows names alone."""
