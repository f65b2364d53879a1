"""Finding the topics of a pattern as they come and go: a lookup service reports them, or is asked again and again.

An update of a service (PIP-145) is applied if the topics then have the hash in it. Whatever else happens (a lost
update, a lost connection) ends in a question, whose answer is the truth; and a question is asked each period besides,
as a broker with too many updates drops some without a word.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.client.known_topics import KnownTopics
from broker_core.client.pulsar.lookup_session import WatchReceiver
from broker_core.client.topic_listing import TopicListing
from broker_core.concurrency import backoff, ended_within
from broker_core.errors import BrokerCoreError, InvalidListing, InvalidName, InvalidPattern
from broker_core.listing import Listing
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.redaction import quoted
from broker_core.wire.pulsar import CommandWatchTopicUpdate

__all__ = ["ListsTopics", "PatternDiscovery", "TopicsChange", "WatchesTopics", "namespace_of_pattern"]

T = TypeVar("T")

_log = logging.getLogger(__name__)

#: The most by which a period is made shorter or longer: clients that started together shall not ask together.
_JITTER: Final = 0.1
#: Seconds until the first question after a failure; each failure in a row doubles them.
_FIRST_RETRY: Final = 1.0
#: Seconds; the longest time to the next question after failures is the period, or this if it is longer.
_LONGEST_RETRY: Final = 15.0
#: Names; larger answers are compared in a thread.
_INLINE: Final = 5_000
#: Updates of a watch that may wait, and updates in a row with another hash after which it is given up.
_WAITING: Final = 10_000
_MISFITS: Final = 5


class ListsTopics(Protocol):
    """Protocol of a client that lists topics, such as ``LookupClient``."""

    async def get_topics_under_namespace(
        self,
        namespace: Any,
        mode: Mode = ...,
        topics_pattern: str | None = ...,
        topics_hash: str | None = ...,
        properties: Mapping[str, str] | None = ...,
    ) -> Any:
        """An answer with ``changed``, ``topics_hash`` and ``names`` (a ``pyarrow.LargeStringArray`` of full names)."""


class WatchesTopics(Protocol):
    """Reports changes of topics: a ``LookupClient``."""

    async def watch_topics(self, namespace: Any, topics_pattern: str, watcher: WatchReceiver) -> bool:
        """Report changes until the connection is lost; false if the server offers no such watch."""


@dataclass(frozen=True, slots=True)
class TopicsChange:
    """Full names that came (``added``) and that are gone (``removed``) since the change before."""

    added: TopicListing
    removed: TopicListing


class PatternDiscovery:
    """``async with PatternDiscovery(client, pattern) as discovery: async for change in discovery: ...``

    The first change adds all existing topics, and comes even if there are none; after it come only answers that differ.
    ``period`` is the time between questions, in seconds. A topic is removed once ``confirmations`` answers in a row
    were without it. No failure removes a topic: the question is asked again, later after each failure in a row.
    ``on_error`` is called with each failure; its errors are raised by the iteration.

    With ``watches`` the server also reports changes, if it offers that: a topic that it reports as gone is removed at
    once. ``on_watching`` is called with whether it does, first and whenever that changes.

    An iteration that is cancelled loses nothing: the next one goes on where it was.
    Raises :exc:`~broker_core.errors.InvalidPattern` for a pattern that names no namespace.
    """

    def __init__(
        self,
        client: ListsTopics,
        pattern: str,
        properties: Mapping[str, str] | None = None,
        *,
        period: float = 60.0,
        confirmations: int = 2,
        mode: Mode = Mode.PERSISTENT,
        on_error: Callable[[Exception], None] | None = None,
        watches: WatchesTopics | None = None,
        on_watching: Callable[[bool], None] | None = None,
    ) -> None:
        if not period > 0:
            raise ValueError(f"the period of a discovery must be more than 0 seconds, not {period}")
        if confirmations < 1:
            raise ValueError(f"a topic needs 1 answer without it at least to be removed, not {confirmations}")
        self.pattern: Final = pattern
        self.namespace: Final = namespace_of_pattern(pattern)
        self.properties: Final = dict(properties or {})
        self.mode: Final = mode
        self.period: Final = period
        self.confirmations: Final = confirmations
        #: The last failure since the last answer; ``None`` if the last question was answered.
        self.last_error: Exception | None = None
        self._client = client
        self._on_error = on_error
        self._known = KnownTopics()
        self._hash: str | None = None
        self._answers = 0
        self._failures = 0
        self._due_at = 0.0
        self._wake = asyncio.Event()
        self._asking = False
        self._closed = False
        #: A watch has no properties, and reports persistent topics only.
        self._watches = watches if mode is Mode.PERSISTENT and not self.properties else None
        self._on_watching = on_watching
        self._watch: _Watch | None = None

    @property
    def is_watching(self) -> bool:
        """Whether the server reports changes now; otherwise it is asked each period."""
        return self._watch is not None and not self._closed and bool(self._watch.is_open)

    @property
    def topics(self) -> TopicListing:
        """The full names of the topics that count as existing."""
        return TopicListing(self._known.names)

    @property
    def answers(self) -> int:
        """The number of answered questions."""
        return self._answers

    def refresh(self) -> None:
        """Ask now, and not only when the period is over."""
        self._due_at = 0.0
        self._wake.set()

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._wake.set()
        if self._watch is not None:
            self._watch.task.cancel()

    async def ended(self) -> None:
        """Wait until nothing is watched any more, after :meth:`close`."""
        if self._watch is not None:
            await asyncio.wait([self._watch.task])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        await self.ended()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TopicsChange:
        if self._asking:
            raise RuntimeError("another task iterates over this discovery")
        self._asking = True
        try:
            while True:
                if self._answers and not self._closed:
                    self._watch_if_possible()
                await self._until_due()
                if self._closed:
                    raise StopAsyncIteration
                change = await (self._ask() if not self._due_at else self._take_in())
                if change is not None:
                    return change
        finally:
            self._asking = False

    def _watch_if_possible(self) -> None:
        """Begin the watch after the first answer, which shows that the question has one."""
        if self._watches is not None:
            if self._watch is None:
                self._watch = _Watch(self, self._watches, self._on_watching)
        elif self._on_watching is not None:
            on_watching, self._on_watching = self._on_watching, None
            on_watching(False)

    async def _until_due(self) -> None:
        loop = asyncio.get_running_loop()
        delay = self._due_at - loop.time()
        if delay > 0:
            await ended_within(delay, self._wake.wait())
        has_updates = self._hash is not None and self._watch is not None and bool(self._watch.updates)
        if not has_updates or loop.time() >= self._due_at:
            # It stays due until it was answered: a cancelled question is asked again at once.
            self._due_at = 0.0
        self._wake.clear()
        if self._closed:
            self._wake.set()

    async def _ask(self) -> TopicsChange | None:
        try:
            listing = await self._client.get_topics_under_namespace(
                self.namespace, self.mode, self.pattern, self._hash, self.properties
            )
        except (BrokerCoreError, OSError) as error:  # a TimeoutError is an OSError
            self._fail(error)
            return None
        listed = listing.names if listing.changed else None
        size = len(self._known.names) + len(listed if listed is not None else ())
        known = await _computed(size, partial(self._known.after, listed, self.confirmations))
        # From here on nothing waits: all of it has happened, or nothing.
        self._known, added, removed = known
        self._hash = listing.topics_hash
        if self._watch is not None and self._watch.updates:
            self._wake.set()
        first = self._answers == 0
        self._answers += 1
        self._failures, self.last_error = 0, None
        self._wait(self.period * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311  # only spreads questions
        if first or len(added) or len(removed):
            return TopicsChange(TopicListing(added), TopicListing(removed))
        return None

    async def _take_in(self) -> TopicsChange | None:
        """The change by the server's updates since the last answer."""
        watch = self._watch
        assert watch is not None
        updates = watch.updates
        reported = list(updates)
        # An answer may have had some of them already.
        had = max((row for row, each in enumerate(reported, 1) if each.topics_hash == self._hash), default=0)
        work = partial(_updated, self._known, self.namespace, reported, had)
        known = await _computed(len(self._known.names), work)
        if watch.updates is updates:
            watch.updates = deque(list(updates)[len(reported) :])
            if watch.updates:
                self._wake.set()
        if known is None:
            watch.does_not_fit()
            return None
        watch.misfits = 0
        self._known, added, removed = known
        self._hash = reported[-1].topics_hash
        if not len(added) and not len(removed):
            return None
        return TopicsChange(TopicListing(added), TopicListing(removed))

    def _fail(self, error: Exception) -> None:
        self.last_error = error
        self._failures += 1
        longest = max(self.period, _LONGEST_RETRY)
        delay = backoff(self._failures, min(_FIRST_RETRY, self.period), longest)
        self._wait(delay)
        _log.warning(
            "cannot list the topics of %s (%s failures in a row): %s; all %s topics stay; next question in %.1f s",
            quoted(self.pattern),
            self._failures,
            error,
            len(self._known.names),
            delay,
        )
        if self._on_error is not None:
            self._on_error(error)

    def _wait(self, seconds: float) -> None:
        self._due_at = asyncio.get_running_loop().time() + seconds


class _Watch:
    """The watch of a discovery; it begins when it is made, and again when its connection was lost."""

    def __init__(
        self, discovery: PatternDiscovery, watches: WatchesTopics, on_watching: Callable[[bool], None] | None
    ) -> None:
        self._discovery = discovery
        self._watches = watches
        self._on_watching = on_watching
        #: Updates that are not applied yet.
        self.updates: deque[CommandWatchTopicUpdate] = deque()
        self.misfits = 0
        #: Whether the server reports changes now; ``None``: not known yet.
        self.is_open: bool | None = None
        self.task: Final = asyncio.get_running_loop().create_task(self._run())

    # -- as the session sees it

    @property
    def known_hash(self) -> str | None:
        """The hash of the topics of the last answer."""
        return self._discovery._hash  # noqa: SLF001

    def began(self, topics_hash: str) -> None:
        """Note that the server reports changes from here on."""
        self._say(True)
        if topics_hash != self.known_hash and not self.updates:
            self._discovery.refresh()

    def update(self, message: CommandWatchTopicUpdate) -> None:
        """Note that topics came or went."""
        if len(self.updates) >= _WAITING:
            self.updates = deque()
            self._discovery.refresh()
        self.updates.append(message)
        self._discovery._wake.set()  # noqa: SLF001

    def does_not_fit(self) -> None:
        """Note that updates do not lead to the hash in them: the next answer is the truth."""
        self.misfits += 1
        if self.misfits == _MISFITS:
            _log.warning(
                "updates of the topics of %s do not fit: the server is asked each period from now on",
                quoted(self._discovery.pattern),
            )
            self._say(False)
            self.task.cancel()
        self._discovery.refresh()

    def _say(self, is_open: bool) -> None:
        if is_open is not self.is_open:
            self.is_open = is_open
            if self._on_watching is not None:
                self._on_watching(is_open)

    async def _run(self) -> None:
        discovery, failures = self._discovery, 0
        while True:
            with suppress(BrokerCoreError, OSError):  # the next question reports the failure
                offered = await self._watches.watch_topics(discovery.namespace, discovery.pattern, self)
                failures = 0 if offered else 30
            failures += 1
            self.updates = deque()
            self._say(False)
            longest = max(discovery.period, _LONGEST_RETRY)
            await asyncio.sleep(backoff(failures, _FIRST_RETRY, longest))


async def _computed(names: int, work: Callable[[], T]) -> T:
    """The result of ``work`` with so many names."""
    return await asyncio.to_thread(work) if names > _INLINE else work()


def _updated(
    known: KnownTopics, namespace: NamespaceName, updates: list[CommandWatchTopicUpdate], had: int
) -> tuple[KnownTopics, Any, Any] | None:
    """The known topics after these updates, the names that they add, and the names that they remove; ``None``: they do
    not lead to the hash of the last update. The last answer ``had`` the first of them already, but topics that it
    lacked might not be gone.
    """
    came: dict[str, None] = {}
    gone: dict[str, None] = {}
    for update in updates[had:]:
        for names, these, others in ((update.deleted_topics, gone, came), (update.new_topics, came, gone)):
            for name in names:
                if name in others:
                    del others[name]
                else:
                    these[name] = None
    listed = known.listed
    if came or gone:
        if gone:
            listed = listed.filter(pc.invert(pc.is_in(listed, value_set=pa.array(list(gone), listed.type))))
        try:
            column = pa.concat_arrays([listed, pa.array(list(came), listed.type)])
            listing = Listing.from_names(namespace, Mode.PERSISTENT, column)
        except InvalidListing:
            return None
        if listing.topics_hash != updates[-1].topics_hash:
            return None
        listed = listing.all().names
    deleted = {name for update in updates for name in update.deleted_topics}
    return known.updated(listed, pa.array(list(deleted), listed.type))


def namespace_of_pattern(pattern: str) -> NamespaceName:
    """The namespace that a topics pattern begins with, read as Pulsar's clients do: as a name, not as an expression.

    Raises :exc:`~broker_core.errors.InvalidPattern` if it names none.
    """
    parts = TopicsPattern.without_scheme(pattern).removeprefix("^").split("/", 2)
    try:
        if len(parts) == 3:
            return NamespaceName(*parts[:2])
        reason = "it has no namespace"
    except InvalidName as invalid:
        reason = str(invalid)
    raise InvalidPattern(
        f"Invalid topics pattern {quoted(pattern)}: it must begin with persistent://tenant/namespace/ ({reason})"
    )
