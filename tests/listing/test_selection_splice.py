"""Splicing topics out of and into a selection: the resulting listing, or an error for a wrong order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from broker_core import Listing, Mode
from broker_core.errors import InvalidListing
from broker_core.patterns import compile_pattern
from tests.support.topics import listing_of

NAMESPACE = "t/n"

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_listing_of_the_names(seed: int) -> None:
    pick = random.Random(seed)
    drawn = [
        f"{pick.choice(['persistent', 'non-persistent'])}://t/n/{pick.choice('abé😀')}{pick.randint(0, 99)}"
        + "x" * pick.choice([0, 0, 150])
        for _ in range(80)
    ]
    before, fresh = listing_of(drawn[:60]), listing_of(drawn[60:])
    base = pick.choice([before.all(), before.matching(compile_pattern("t/n/.*[0-4]")), before.range(3, 30)])
    has = set(base.names.to_pylist())
    _, known = listing_of(base.names.to_pylist()).locate(fresh.names)
    added = fresh.rows(np.flatnonzero(~known))
    put, _ = listing_of(base.names.to_pylist()).locate(added.names)
    gone = np.sort(np.array(pick.sample(range(len(base)), min(len(base), pick.randint(0, 9))), np.int64))
    names = base.names.to_pylist()
    wanted = listing_of(sorted(has - {names[at] for at in gone} | set(added.names.to_pylist())))
    spliced = base.spliced(gone, put, added)
    assert spliced.names.equals(wanted.names)
    assert spliced.topics_hash == wanted.topics_hash
    assert bytes(spliced.body()) == bytes(wanted.all().body())


def test_a_topic_in_a_wrong_place_is_refused() -> None:
    base, added = listing_of(["persistent://t/n/a", "persistent://t/n/c"]), listing_of(["persistent://t/n/b"])
    assert len(base.all().spliced([], [1], added.all())) == 3
    for put in ([0], [2]):
        with pytest.raises(InvalidListing, match="order of the hash"):
            base.all().spliced([], put, added.all())
    with pytest.raises(InvalidListing):
        base.all().spliced([], [1], listing_of(["persistent://t/n/a"]).all())  # twice
    with pytest.raises(InvalidListing):
        base.all().spliced([], [0], Listing.from_names("t/o", Mode.ALL, ["persistent://t/o/a"]).all())
    for gone, put in (([0, 0], [1]), ([2], [1]), ([-1], [1]), ([], [3]), ([], [])):
        with pytest.raises((ValueError, IndexError)):
            base.all().spliced(gone, put, added.all())


@pytest.mark.parametrize("mode", [Mode.PERSISTENT, Mode.NON_PERSISTENT])
def test_topics_of_a_listing_of_all_modes_go_where_their_domain_is_listed(mode: Mode) -> None:
    domain = "persistent" if mode is Mode.PERSISTENT else "non-persistent"
    other = "non-persistent" if mode is Mode.PERSISTENT else "persistent"
    base = listing_of([f"{domain}://t/n/a", f"{domain}://t/n/c"], mode).all()
    every = listing_of([f"{domain}://t/n/b", f"{other}://t/n/b"])
    shown = every.matching(compile_pattern(".*")).mask(
        np.array([name.startswith(f"{domain}:") for name in every.names.to_pylist()])
    )
    spliced = base.spliced([], [1], shown)
    assert spliced.names.to_pylist() == [f"{domain}://t/n/{letter}" for letter in "abc"]
    assert spliced.listing.mode is mode
    at = [0, 1] if mode is Mode.PERSISTENT else [1, 2]
    with pytest.raises(InvalidListing, match="do not belong"):
        base.spliced([], at, every.all())
    with pytest.raises(InvalidListing, match="do not belong"):
        base.spliced([], [0], Listing.from_names("t/m", mode, [f"{domain}://t/m/x"]).all())


@pytest.mark.parametrize("gone", [[0.0], [True], [[0]], [1, 0], [1, -(2**63), -1, 1]], ids=str)
def test_positions_are_ascending_integers(gone: Any) -> None:
    kept = Listing.from_names("t/n", Mode.PERSISTENT, ["persistent://t/n/a", "persistent://t/n/b"]).all()
    with pytest.raises(ValueError, match="ascending integers"):
        kept.spliced(np.array(gone), [], kept.range(0, 0))
