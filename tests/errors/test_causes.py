"""The causes of errors are distinct words, because they are labels and keys."""

from __future__ import annotations

import broker_core
from broker_core import errors
from broker_core.errors.causes import Cause


def test_each_cause_is_a_word_of_its_own() -> None:
    assert len({cause.value for cause in Cause}) == len(Cause)
    assert all(cause.value == cause.name.lower() for cause in Cause)


def test_it_is_at_hand_where_errors_are_made() -> None:
    assert broker_core.Cause is Cause
    assert errors.Cause is Cause
