from __future__ import annotations

import pytest

from broker_core.client.client_errors import (
    ClientError,
    ConnectionLost,
    ConnectTimeout,
    CredentialsFailed,
    HandshakeRefused,
    OperationTimeout,
    ServerRefused,
    TlsCutShort,
    TlsFailed,
    UnexpectedAnswer,
    is_passing,
    server_error,
)
from broker_core.errors import ServerError


def test_a_code_of_the_enum() -> None:
    assert server_error(4, "no") == (ServerError.AuthorizationError, "no")


def test_a_code_that_is_not_in_the_enum_is_never_passed_on() -> None:
    assert server_error(77, "odd") == (ServerError.UnknownError, "odd (unknown error code 77)")
    assert server_error(-1, "") == (ServerError.UnknownError, "(unknown error code -1)")


def test_what_a_refusal_says() -> None:
    assert str(ServerRefused(ServerError.MetadataError, "no")) == "MetadataError: no"
    assert str(HandshakeRefused(ServerError.MetadataError, "")) == "MetadataError"


@pytest.mark.parametrize(
    ("failed", "passing"),
    [
        (ConnectionLost("gone"), True),
        (ConnectTimeout("nobody"), True),
        (TlsCutShort("closed"), True),
        (ServerRefused(ServerError.ServiceNotReady, ""), True),
        (ServerRefused(ServerError.TooManyRequests, ""), True),
        (HandshakeRefused(ServerError.ServiceNotReady, ""), True),
        (HandshakeRefused(ServerError.AuthenticationError, ""), False),
        (ServerRefused(ServerError.MetadataError, ""), False),
        (ServerRefused(ServerError.AuthorizationError, ""), False),
        (TlsFailed("not trusted"), False),
        (CredentialsFailed("no file"), False),
        (OperationTimeout("late"), False),
        (UnexpectedAnswer("odd"), False),
    ],
)
def test_what_may_pass(failed: ClientError, *, passing: bool) -> None:
    assert is_passing(failed) is passing
    copied = failed.copy()
    assert (type(copied), str(copied), copied is failed) == (type(failed), str(failed), False)
