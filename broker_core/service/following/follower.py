"""A follower of a question: an event stream over HTTP, or a watcher of Pulsar's protocol, as its feed sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from broker_core.access import Asker
from broker_core.concurrency import loop_turn
from broker_core.errors import ListingFailed
from broker_core.listing import Selection, selection_difference

__all__ = [
    "AnswerChange",
    "ChangeEvent",
    "ChangeRenderer",
    "Follower",
    "Shortage",
    "call_in_turns",
    "rendered_change",
]

#: Seconds without memory for what is newer after which followers are ended: what they have may be what is in the way,
#: and clients that come back get the newest answer, or hear that there is no room.
_MOST_SHORT: Final = 10.0


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """One change of an answer: the topics that came, those that went (of the answer before), and the new hash."""

    added: Selection
    removed: Selection
    before: Selection
    after: Selection
    topics_hash: str
    event_id: str


class ChangeRenderer(Protocol):
    """The form in which a kind of followers gets changes: made once for all of them, in any thread."""

    def changed(self, change: AnswerChange, /) -> tuple[bytes, ...] | None:
        """The texts of a change; ``None`` if it is too large to be kept for all."""

    def recreated(self, names: Selection, event_id: str, /) -> tuple[bytes, ...]:
        """The texts of names that were recreated as other topics."""


class ChangeEvent:
    """One change as it is written to all followers: from one event id to the next, in the wanted forms."""

    __slots__ = ("__weakref__", "after", "before", "rendered", "size")

    def __init__(self, before: str, after: str, rendered: Mapping[ChangeRenderer, tuple[bytes, ...]]) -> None:
        self.before = before
        self.after = after
        self.rendered = rendered
        self.size = sum(len(text) for texts in rendered.values() for text in texts)


class Shortage:
    """How long memory has been short for one thing that is tried again and again."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since: float | None = None

    def is_over(self) -> None:
        """Note that there was memory, or that it was not what is missing."""
        self._since = None

    def goes_on(self) -> bool:
        """Note that memory is short; returns whether it has been for so long that followers are to be ended."""
        now = asyncio.get_running_loop().time()
        self._since = self._since or now
        return now - self._since >= _MOST_SHORT


class Follower(Protocol):
    """A follower, as its feed notifies it; nothing here waits."""

    @property
    def asker(self) -> Asker:
        """The client, whose rights are looked at again."""

    @property
    def renderer(self) -> ChangeRenderer:
        """The form of its changes."""

    @property
    def is_up_to_date(self) -> bool:
        """Whether all that was written to the client leads to the feed's answer."""

    def changed(self, event: ChangeEvent | None, before: Selection | None, /) -> None:
        """Write that the answer has changed from ``before``; ``None`` for ``event``: the change was not rendered."""

    def waits(self, before: Selection, /) -> bool:
        """Whether it has a change by :meth:`changed_later`; until then its client has the topics of ``before``."""

    def changed_later(self, event: ChangeEvent | None, before: Selection, after: Selection, /) -> None:
        """Write a change that it has waited for, if it still does: to ``after``, which may be the answer no more."""

    def fail(self, failure: ListingFailed, /) -> None:
        """Write that the question has no answer now; all topics stay."""

    def suspend(self, failure: ListingFailed, /) -> None:
        """Write nothing until :meth:`resume`: it is unknown whether the client may see the topics."""

    def resume(self) -> None:
        """Go on after :meth:`suspend`; no effect without it."""

    def end(self, failure: ListingFailed, /) -> None:
        """End it: the client may not follow any more."""

    def select_by_properties(self) -> None:
        """Note that topics of the namespace are selected by properties from now on, which a watch does not have."""

    def close(self) -> None:
        """End it with the feed: the client is to come back."""


def rendered_change(
    selection: Selection,
    before: Selection,
    topics_hash: str,
    event_id: str,
    renderers: tuple[ChangeRenderer, ...],
) -> dict[ChangeRenderer, tuple[bytes, ...]]:
    """The difference of two answers in each form that has room for it; for any thread."""
    added, removed = selection_difference(selection, before)
    change = AnswerChange(added, removed, before, selection, topics_hash, event_id)
    made = {each: each.changed(change) for each in renderers}
    return {each: texts for each, texts in made.items() if texts is not None}


def call_in_turns(calls: Sequence[Callable[[], None]], at_once: int) -> None:
    """Call all, ``at_once`` in each turn of the event loop that has time."""

    def call_some() -> None:
        if len(calls) > at_once:  # first: whatever one of them fails with, the others are called
            call_in_turns(calls[at_once:], at_once)
        for call in calls[:at_once]:
            call()

    loop_turn().call_next(call_some)
