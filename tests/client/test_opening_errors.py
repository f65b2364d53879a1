from __future__ import annotations

import errno
import socket
import ssl

import pytest

from broker_core.client import ClientError, ConnectionLost, InvalidServiceUrl, TlsFailed
from broker_core.client.client_errors import TlsCutShort
from broker_core.client.opening_errors import opening_errors, tls_failure


@pytest.mark.parametrize(
    ("raised", "is_tls", "kind", "said"),
    [
        (
            OSError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"),
            False,
            ConnectionLost,
            "cannot connect to a:1: Connection refused$",
        ),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0), [Errno 111] Connect"
            ),
            False,
            ConnectionLost,
            "cannot connect to a:1: Connection refused$",
        ),
        (
            socket.gaierror(-2, "Name or service not known"),
            False,
            ConnectionLost,
            "a:1: Name or service not known",
        ),
        (ConnectionResetError(), False, ConnectionLost, "a:1 closed the connection at once"),
        (ConnectionResetError(), True, TlsCutShort, "it may speak no TLS"),
        (UnicodeError("x"), False, InvalidServiceUrl, "the host of a:1 is no name"),
    ],
)
def test_what_keeps_a_connection_from_being_opened(
    raised: Exception, kind: type[ClientError], said: str, *, is_tls: bool
) -> None:
    with pytest.raises(kind, match=said), opening_errors("a:1", is_tls=is_tls):
        raise raised


def test_a_certificate_that_is_not_accepted() -> None:
    failed = ssl.SSLCertVerificationError(1, "x")
    failed.verify_message = "expired"
    assert tls_failure(failed, "a:1") == "the certificate of a:1 is not accepted: expired"


@pytest.mark.parametrize(
    ("reason", "said"),
    [("WRONG_VERSION_NUMBER", "a:1 speaks no TLS"), ("BAD_THING", "TLS with a:1 failed: BAD_THING")],
)
def test_other_failures_of_tls(reason: str, said: str) -> None:
    failed = ssl.SSLError(1, "x")
    failed.reason = reason
    with pytest.raises(TlsFailed, match=said), opening_errors("a:1", is_tls=True):
        raise failed
