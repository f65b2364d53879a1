"""A follower of a question, as its feed sees it: an event stream over HTTP, or a watcher of Pulsar's protocol.

A large difference of two answers comes in pieces, with the hash of a client's topics after each piece: new topics
before deleted ones, so that a client never has fewer topics between two pieces than before and after all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from broker_core.access import Asker
from broker_core.concurrency import loop_turn
from broker_core.errors import ListingFailed
from broker_core.listing import Selection, selection_difference

__all__ = [
    "MOST_JOINED",
    "AnswerChange",
    "ChangeEvent",
    "ChangeRenderer",
    "Follower",
    "JoinedUpdates",
    "Piece",
    "Shortage",
    "call_in_turns",
    "difference_pieces",
    "joined_updates",
    "rendered_change",
]

#: Seconds without memory for newer answers after which followers are ended: their own answers may take that memory.
#: Clients that come back get the newest answer, or an error for lack of memory.
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
    """Shortage of memory for one thing that is tried again and again, since its begin."""

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
        """Whether a change by :meth:`changed_later` is due; until then its client has the topics of ``before``."""

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


_Updates: TypeAlias = "tuple[tuple[bytes, Selection], ...]"

#: Encoded bytes of a piece, unless one name has more; and of the pieces that are made at a time.
_PIECE: Final = 48 * 1024
MOST_JOINED: Final = 512 * 1024


class Piece(NamedTuple):
    """The topics that come and go, and the client's topics after that."""

    added: Selection
    removed: Selection
    after: Selection


def difference_pieces(before: Selection, after: Selection) -> list[Piece]:
    """The first pieces, of about :data:`MOST_JOINED` bytes; after the last piece of all, a client has ``after`` itself.

    The hash of a client's topics after each piece is known, as that of ``after`` is.
    """
    added, removed = selection_difference(after, before)
    if added.fields_size + removed.fields_size <= _PIECE:
        return [Piece(added, removed, after)]
    made: list[Piece] = []
    state, size = before, 0
    for come, gone in _pieces(added, removed):
        if size >= MOST_JOINED:
            return made
        state = state.with_changes(gone.names, come)
        made.append(Piece(come, gone, state))
        size += come.fields_size + gone.fields_size
    made[-1] = made[-1]._replace(after=after)
    return made


def _pieces(added: Selection, removed: Selection) -> Iterator[tuple[Selection, Selection]]:
    for come in _halved(added):
        yield come, removed.range(0, 0)
    for gone in _halved(removed):
        yield added.range(0, 0), gone


def _halved(selection: Selection) -> Iterator[Selection]:
    rows = len(selection)
    if not rows:
        return
    if rows == 1 or selection.fields_size <= _PIECE:
        yield selection
        return
    yield from _halved(selection.range(0, rows // 2))
    yield from _halved(selection.range(rows // 2, rows))


class JoinedUpdates:
    """The next updates of a follower that has ``base`` on the way to ``target``, each with the topics after it."""

    __slots__ = ("__weakref__", "_whole", "base", "target", "updates")

    def __init__(
        self, base: Selection, target: Selection, updates: _Updates, whole: JoinedUpdates | None = None
    ) -> None:
        self.base = base
        self.target = target
        self.updates = updates
        self._whole = whole  # it has the permits

    def after(self, base: Selection) -> JoinedUpdates | None:
        """The remaining updates for a follower that has ``base``, if some of the updates lead to it."""
        if base is self.base:
            return self
        for number, (_, has) in enumerate(self.updates[:-1], 1):
            if has is base:
                return JoinedUpdates(base, self.target, self.updates[number:], self)
        return None

    @property
    def size(self) -> int:
        """Bytes of the updates."""
        return sum(len(update) for update, _ in self.updates)


def joined_updates(base: Selection, target: Selection, renderer: ChangeRenderer) -> JoinedUpdates:
    """The first updates from one answer to another, in the form of a renderer."""
    updates: list[tuple[bytes, Selection]] = []
    for piece in difference_pieces(base, target):
        has = piece.after
        change = AnswerChange(piece.added, piece.removed, base, has, has.topics_hash, has.topics_hash)
        is_empty = not len(piece.added) and not len(piece.removed)
        made = (b"",) if is_empty else renderer.changed(change)
        assert made is not None  # a piece is small
        updates.append((b"".join(made), has))
    return JoinedUpdates(base, target, tuple(updates))
