"""Finding the topics of a pattern as they come and go, by asking a lookup service again and again."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, Self

from broker_core.client.known_topics import KnownTopics
from broker_core.client.topic_listing import TopicListing
from broker_core.errors import BrokerCoreError, InvalidName, InvalidPattern
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import TopicsPattern
from broker_core.redaction.quoted import quoted

__all__ = ["ListsTopics", "PatternDiscovery", "TopicsChange", "namespace_of_pattern"]

_log = logging.getLogger(__name__)

#: By what a period is made shorter or longer, at most: clients that started together shall not ask together.
_JITTER: Final = 0.1
#: Seconds until the first question after a failure; each failure in a row doubles them.
_FIRST_RETRY: Final = 1.0
#: Seconds; the longest time to the next question after failures is the period, or this where it is longer.
_LONGEST_RETRY: Final = 15.0
#: Names; larger answers are compared in a thread.
_INLINE: Final = 5_000


class ListsTopics(Protocol):
    """Whatever can be asked for listings: a ``LookupClient``."""

    async def get_topics_under_namespace(
        self,
        namespace: Any,
        mode: Mode = ...,
        topics_pattern: str | None = ...,
        topics_hash: str | None = ...,
        properties: Mapping[str, str] | None = ...,
    ) -> Any:
        """An answer with ``changed``, ``topics_hash`` and ``names`` (a ``pyarrow.LargeStringArray`` of full names)."""


@dataclass(frozen=True, slots=True)
class TopicsChange:
    """Full names that came (``added``) and that are gone (``removed``) since the change before."""

    added: TopicListing
    removed: TopicListing


class PatternDiscovery:
    """``async with PatternDiscovery(client, pattern) as discovery: async for change in discovery: ...``

    The first change adds all topics there are, and comes even where there are none; after it come only answers that
    differ. ``period`` is the time between questions, in seconds. A topic is removed once ``confirmations`` answers in a
    row were without it. No failure removes a topic: the question is asked again, later after each failure in a row.
    ``on_error`` is called with each failure; what it raises is raised by the iteration.

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
        #: The last failure since the last answer; ``None`` where the last question was answered.
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

    @property
    def topics(self) -> TopicListing:
        """The full names of the topics that count as being there."""
        return TopicListing(self._known.names)

    @property
    def answers(self) -> int:
        """How many questions were answered."""
        return self._answers

    def refresh(self) -> None:
        """Ask now, and not only when the period is over."""
        self._wake.set()

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._wake.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TopicsChange:
        if self._asking:
            raise RuntimeError("another task iterates over this discovery")
        self._asking = True
        try:
            while True:
                await self._until_due()
                if self._closed:
                    raise StopAsyncIteration
                change = await self._ask()
                if change is not None:
                    return change
        finally:
            self._asking = False

    async def _until_due(self) -> None:
        loop = asyncio.get_running_loop()
        delay = self._due_at - loop.time()
        if delay > 0:
            try:
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                pass
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
        if len(self._known.names) + len(listed if listed is not None else ()) > _INLINE:
            outcome = await asyncio.to_thread(self._known.after, listed, self.confirmations)
        else:
            outcome = self._known.after(listed, self.confirmations)
        # From here on nothing waits: all of it has happened, or nothing.
        self._known, added, removed = outcome
        self._hash = listing.topics_hash
        first = self._answers == 0
        self._answers += 1
        self._failures, self.last_error = 0, None
        self._wait(self.period * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311  # only spreads questions
        if first or len(added) or len(removed):
            return TopicsChange(TopicListing(added), TopicListing(removed))
        return None

    def _fail(self, error: Exception) -> None:
        self.last_error = error
        self._failures += 1
        longest = max(self.period, _LONGEST_RETRY)
        delay = min(longest, min(_FIRST_RETRY, self.period) * 2 ** min(self._failures - 1, 30))
        delay *= random.uniform(0.5, 1.0)  # noqa: S311  # only spreads questions
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


def namespace_of_pattern(pattern: str) -> NamespaceName:
    """The namespace that a topics pattern begins with, read as Pulsar's clients do: as a name, not as an expression.

    Raises :exc:`~broker_core.errors.InvalidPattern` where it names none.
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
