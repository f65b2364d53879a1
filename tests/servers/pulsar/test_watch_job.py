"""Which patterns can be watched: measured as brokers do, and refused with their codes."""

from __future__ import annotations

import pytest

from broker_core.errors import Cause, ListingFailed, ServerError
from broker_core.servers.pulsar.client_watchers import bad_pattern, check_length


def test_the_scheme_does_not_count_and_a_pair_of_surrogates_does() -> None:
    for text in ("a" * 50, "persistent://" + "a" * 50, "\N{PILE OF POO}" * 25):
        check_length(text, 50)
    for text in ("a" * 51, "persistent://" + "a" * 51, "\N{PILE OF POO}" * 26):
        with pytest.raises(ListingFailed, match="Pattern longer than maximum: 50") as refused:
            check_length(text, 50)
        assert refused.value.code is ServerError.NotAllowedError


def test_no_pattern_is_an_invalid_name_as_at_a_broker() -> None:
    failure = bad_pattern(ListingFailed("no", cause=Cause.PATTERN, reason="bad_pattern"))
    assert (failure.code, failure.cause) == (ServerError.InvalidTopicName, Cause.PATTERN)
    late = ListingFailed("late", cause=Cause.TIME, reason="time")
    assert bad_pattern(late) is late
