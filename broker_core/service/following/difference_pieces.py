"""The difference of two answers in pieces, with the hash of a client's topics after each piece.

New topics are sent before deleted ones, so that a client never has fewer topics between two pieces than before and
after all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from broker_core.listing import Selection, selection_difference
from broker_core.service.following.follower import AnswerChange, ChangeRenderer

__all__ = ["MOST", "JoinedUpdates", "Piece", "difference_pieces", "joined_updates"]

_Updates: TypeAlias = "tuple[tuple[bytes, Selection], ...]"

#: Encoded bytes of a piece, unless one name has more; and of the pieces that are made at a time.
_PIECE: Final = 48 * 1024
MOST: Final = 512 * 1024


class Piece(NamedTuple):
    """The topics that come and go, and the client's topics after that."""

    added: Selection
    removed: Selection
    after: Selection


def difference_pieces(before: Selection, after: Selection) -> list[Piece]:
    """The first pieces, of about :data:`MOST` bytes; after the last piece of all, a client has ``after`` itself.

    The hash of a client's topics after each piece is known, as that of ``after`` is.
    """
    added, removed = selection_difference(after, before)
    if added.fields_size + removed.fields_size <= _PIECE:
        return [Piece(added, removed, after)]
    made: list[Piece] = []
    state, size = before, 0
    for come, gone in _pieces(added, removed):
        if size >= MOST:
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
