"""The causes of errors are distinct words, because they are labels and keys; each has a code of every transport."""

from __future__ import annotations

from http import HTTPStatus

import pytest

import broker_core
from broker_core.errors.error_codes import Cause, ServerError, cause_of, lookup_code
from broker_core.wire.kafka import ErrorCode


def test_each_cause_is_a_word_of_its_own() -> None:
    assert len({cause.value for cause in Cause}) == len(Cause)
    assert all(cause.value == cause.name.lower() for cause in Cause)
    assert broker_core.Cause is Cause


@pytest.mark.parametrize("cause", Cause)
def test_each_transport_tells_a_cause_as_an_error(cause: Cause) -> None:
    assert isinstance(cause.pulsar, ServerError)
    assert all(HTTPStatus(status) >= 400 for status in (cause.http, cause.web_service))
    assert ErrorCode(cause.kafka) is not ErrorCode.NONE


def test_limits_and_clusters_that_are_away_ask_kafka_clients_to_try_again() -> None:
    causes = (Cause.QUEUE, Cause.TIME, Cause.PERMITS, Cause.UPSTREAM, Cause.UNAVAILABLE)
    assert {cause.kafka for cause in causes} == {ErrorCode.REQUEST_TIMED_OUT}


@pytest.mark.parametrize("code", ServerError)
def test_a_code_that_is_told_for_one_kind_of_cause_comes_back_as_one_of_them(code: ServerError) -> None:
    cause = cause_of(code, otherwise=Cause.UPSTREAM)
    assert cause is Cause.UPSTREAM or cause.pulsar is code


def test_the_codes_are_those_of_the_protocol() -> None:
    assert [code.value for code in ServerError] == list(range(26))
    numbers = {code.name: code.value for code in ServerError}
    assert (numbers["MetadataError"], numbers["TooManyRequests"]) == (1, 14)
    assert (numbers["InvalidTopicName"], numbers["NotAllowedError"]) == (17, 22)


def test_lookups_never_close_the_connection_of_a_client() -> None:
    assert {lookup_code(cause.pulsar) for cause in Cause}.isdisjoint(
        {ServerError.TooManyRequests, ServerError.ServiceNotReady}
    )
    assert lookup_code(ServerError.AuthorizationError) is ServerError.AuthorizationError
