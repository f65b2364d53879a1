"""Pieces of a difference: each within its bytes, all of them the whole, each with the hash that a client has then."""

from __future__ import annotations

import random

import pytest

from broker_core.listing.listing import Listing, Selection
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode
from broker_core.service.following import follower as module
from broker_core.service.following.follower import difference_pieces
from tests.support.examples import examples


def selection(names: set[str]) -> Selection:
    return Listing.from_names("a/b", Mode.PERSISTENT, sorted(names)).all()


def name(number: int) -> str:
    return f"persistent://a/b/{'x' * (number % 90)}{number}"


def joined(names: set[str], before: Selection, after: Selection) -> Selection:
    """What a client has after the pieces that are made at a time."""
    least = names & set(after.names.to_pylist())
    pieces = difference_pieces(before, after)
    for piece in pieces:
        assert piece.added.fields_size + piece.removed.fields_size <= module._PIECE or (
            len(piece.added) + len(piece.removed) == 1
        )
        come, gone = set(piece.added.names.to_pylist()), set(piece.removed.names.to_pylist())
        assert not come & names
        assert gone <= names
        names |= come
        names -= gone
        assert names >= least  # never fewer than before and after
        assert piece.after.topics_hash == topics_hash(sorted(names))
    return pieces[-1].after


@pytest.mark.parametrize("seed", range(examples(10)))
def test_pieces_lead_from_one_answer_to_the_other(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chosen = random.Random(seed)
    monkeypatch.setattr(module, "_PIECE", chosen.choice((100, 1000, 5000)))
    monkeypatch.setattr(module, "MOST_JOINED", chosen.choice((500, 2500, 10**9)))
    names = {name(number) for number in range(chosen.randint(0, 200))}
    later = {name(number) for number in chosen.sample(range(320), chosen.randint(0, 200))}
    has, target = selection(names), selection(later)
    for _ in range(500):
        has = joined(names, has, target)
        if has is target:
            break
    assert names == later


def test_no_difference_is_one_empty_piece() -> None:
    one, same = selection({name(1)}), selection({name(1)})
    (piece,) = difference_pieces(one, same)
    assert (len(piece.added), len(piece.removed), piece.after) == (0, 0, same)
