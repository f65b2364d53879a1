"""Errors of HTTP as those of the client."""

from __future__ import annotations

import json

import pytest

from broker_core.client import HandshakeRefused
from broker_core.client.client_errors import is_passing
from broker_core.client.http.http_errors import refusal
from broker_core.errors import Cause, ServerError


@pytest.mark.parametrize("cause", Cause)
def test_a_problem_has_the_code_of_its_cause(cause: Cause) -> None:
    """As over the binary protocol, whatever the status."""
    found = refusal(500, json.dumps({"cause": cause.name, "detail": "why"}).encode())
    assert (found.code, found.message) == (cause.pulsar, "why")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, ServerError.AuthenticationError),
        (403, ServerError.AuthorizationError),
        (404, ServerError.TopicNotFound),
        (412, ServerError.InvalidTopicName),
        (429, ServerError.TooManyRequests),
        (500, ServerError.MetadataError),
        (502, ServerError.ServiceNotReady),
        (503, ServerError.ServiceNotReady),
        (504, ServerError.ServiceNotReady),
        (599, ServerError.MetadataError),
    ],
)
def test_a_broker_says_a_reason(status: int, code: ServerError) -> None:
    found = refusal(status, b'{"reason": "why"}')
    assert (found.code, found.message) == (code, "why")
    assert isinstance(found, HandshakeRefused) is (status == 401)
    assert is_passing(found) is (status in (429, 502, 503, 504))


def test_what_says_nothing_is_known_by_its_status() -> None:
    for body in (b"", b"<html>", b"[]", b'{"reason": 7}', b'{"cause": "NONE"}', b'{"cause": 7}', b"[" * 9999):
        assert str(refusal(404, body)) == "TopicNotFound: 404 Not Found"
    assert str(refusal(599, b"")) == "MetadataError: 599 "
    assert len(refusal(500, json.dumps({"reason": "x" * 10_000}).encode()).message) < 500
