"""The codes of errors for Pulsar's clients."""

from __future__ import annotations

from broker_core.errors.causes import Cause
from broker_core.errors.server_error import ServerError, lookup_code


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
