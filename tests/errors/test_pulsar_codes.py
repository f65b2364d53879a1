"""The codes of errors for Pulsar's clients."""

from __future__ import annotations

import pytest

from broker_core.errors.causes import Cause
from broker_core.errors.pulsar_codes import CODES, ServerError, cause_of, lookup_code


def test_the_codes_are_those_of_the_protocol() -> None:
    assert [code.value for code in ServerError] == list(range(26))
    numbers = {code.name: code.value for code in ServerError}
    assert (numbers["MetadataError"], numbers["TooManyRequests"]) == (1, 14)
    assert (numbers["InvalidTopicName"], numbers["NotAllowedError"]) == (17, 22)


def test_each_cause_has_a_code() -> None:
    assert set(CODES) == set(Cause)
    assert CODES[Cause.DENIED] is ServerError.AuthorizationError


@pytest.mark.parametrize("code", ServerError)
def test_a_code_that_is_told_for_one_kind_of_cause_comes_back_as_one_of_them(code: ServerError) -> None:
    cause = cause_of(code, otherwise=Cause.UPSTREAM)
    assert cause is Cause.UPSTREAM or CODES[cause] is code


def test_lookups_never_close_the_connection_of_a_client() -> None:
    assert {lookup_code(CODES[cause]) for cause in Cause}.isdisjoint(
        {ServerError.TooManyRequests, ServerError.ServiceNotReady}
    )
    assert lookup_code(ServerError.AuthorizationError) is ServerError.AuthorizationError
