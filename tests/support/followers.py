"""A follower of a question that records its notifications, and topics of a namespace for it."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed
from broker_core.listing.listing import Selection
from broker_core.names import NamespaceName, TopicName
from broker_core.pipeline import Pipeline
from broker_core.service import AnswerChange, ChangeEvent

__all__ = ["NAMESPACE", "RecordingFollower", "topic", "unanswered"]

NAMESPACE = NamespaceName("a", "b")


def topic(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


def unanswered(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Leave questions to a pipeline without an answer; the events say that one was asked, and that one has ended."""
    asked, ended = asyncio.Event(), asyncio.Event()

    async def answer(*_: object) -> None:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    monkeypatch.setattr(pipeline, "answer_now", lambda _question: None)
    monkeypatch.setattr(pipeline, "answer", answer)
    return asked, ended


class _Names:
    """Changes as their names, those that went behind a minus."""

    def changed(self, change: AnswerChange) -> tuple[bytes, ...] | None:
        added, removed = change.added.names.to_pylist(), change.removed.names.to_pylist()
        if len(added) + len(removed) > 1000:
            return None
        return (",".join([*added, *(f"-{name}" for name in removed)]).encode(),)

    def recreated(self, names: Selection, event_id: str) -> tuple[bytes, ...]:
        return (f"{event_id}:{','.join(names.names.to_pylist())}".encode(),)


_NAMES = _Names()


class RecordingFollower:
    """``events`` are the changes; ``lags`` counts those that were not there as events."""

    renderer = _NAMES

    def __init__(self, asker: Asker | None = None) -> None:
        self.asker = asker or Asker()
        self.events: deque[ChangeEvent] = deque()
        self.earlier: list[Selection | None] = []
        self.lags = 0
        self.failures: list[ListingFailed] = []
        self.is_suspended = False
        self.ended: ListingFailed | None = None
        self.is_closed = False
        self.is_selecting = False

    @property
    def is_up_to_date(self) -> bool:
        return not self.events

    def next(self) -> ChangeEvent | None:
        """The oldest change that was not looked at."""
        return self.events.popleft() if self.events else None

    def text(self) -> str | None:
        """Its text."""
        event = self.next()
        return None if event is None else event.rendered[self.renderer][0].decode()

    def changed(self, event: ChangeEvent | None, before: Selection | None) -> None:
        self.earlier.append(before)
        if event is None or self.renderer not in event.rendered:
            self.lags += 1
        else:
            self.events.append(event)

    def waits(self, _before: Selection) -> bool:
        return False

    def changed_later(self, _event: ChangeEvent | None, _before: Selection, _after: Selection) -> None:
        raise AssertionError("it does not wait")

    def fail(self, failure: ListingFailed) -> None:
        self.failures.append(failure)

    def suspend(self, failure: ListingFailed) -> None:
        self.is_suspended = True
        self.failures.append(failure)

    def resume(self) -> None:
        self.is_suspended = False

    def end(self, failure: ListingFailed) -> None:
        self.ended = failure

    def select_by_properties(self) -> None:
        self.is_selecting = True

    def close(self) -> None:
        self.is_closed = True
