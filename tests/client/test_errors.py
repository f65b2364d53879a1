from __future__ import annotations

from broker_core.client.errors import HandshakeRefused, ServerRefused, server_error
from broker_core.errors import ServerError


def test_a_code_of_the_enum() -> None:
    assert server_error(4, "no") == (ServerError.AuthorizationError, "no")


def test_a_code_that_is_not_in_the_enum_is_never_passed_on() -> None:
    assert server_error(77, "odd") == (ServerError.UnknownError, "odd (unknown error code 77)")
    assert server_error(-1, "") == (ServerError.UnknownError, "(unknown error code -1)")


def test_what_a_refusal_says() -> None:
    assert str(ServerRefused(ServerError.MetadataError, "no")) == "MetadataError: no"
    assert str(HandshakeRefused(ServerError.MetadataError, "")) == "MetadataError"
