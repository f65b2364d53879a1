"""The answer of the rest of the chain is a value."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from broker_core import SAME, Listing, Mode, RestAnswer


def test_it_is_immutable() -> None:
    listing = Listing.from_names("t/n", Mode.PERSISTENT, ["persistent://t/n/a"])
    answer = RestAnswer(listing.all(), False, "7", "catalog")
    assert (len(answer.selection), answer.stale_seconds, answer.details) == (1, None, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.version = "8"  # type: ignore[misc]


def test_the_same_is_the_same_everywhere() -> None:
    assert repr(SAME) == "SAME"
    assert copy.deepcopy(SAME) is SAME
    assert pickle.loads(pickle.dumps(SAME)) is SAME
