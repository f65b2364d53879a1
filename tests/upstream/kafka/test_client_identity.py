from __future__ import annotations

import base64
import json

import pytest

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.connection_credentials import ClientCredentials
from broker_core.upstream.kafka import identity_of, principal_of


def _token(claims: object) -> bytes:
    return b"e30." + base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=") + b"."


async def test_a_password_and_a_token_are_passed_on_as_they_are() -> None:
    basic = identity_of(ClientCredentials("basic", b"alice:pen:cil"))
    assert [message async for message in basic.sasl.exchange()] == [b"\0alice\0pen:cil"]
    token = identity_of(ClientCredentials("token", b"a.b.c"))
    assert [b"Bearer a.b.c" in message async for message in token.sasl.exchange()] == [True]


def test_clients_with_the_same_credentials_share_connections_and_show_nothing() -> None:
    one, same, other = (
        identity_of(ClientCredentials("basic", data))
        for data in (b"alice:secret", b"alice:secret", b"bob:secret")
    )
    assert one.key == same.key != other.key
    assert "secret" not in f"{one!r}"


def test_the_principal_is_the_user_or_the_subject_of_the_token() -> None:
    assert principal_of(ClientCredentials("basic", b"alice:pen:cil")).role == "alice"
    principal = principal_of(ClientCredentials("token", _token({"sub": "ann", "exp": 4_000_000_000})))
    assert (principal.role, principal.expires_at) == ("ann", 4_000_000_000.0)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (b"a.b", "bad_token"),
        (b"a.!.c", "bad_token"),
        (_token([]), "no_subject"),
        (_token({"exp": 1}), "no_subject"),
        (_token({"sub": 7}), "bad_role"),
        (_token({"sub": " "}), "bad_role"),
        (_token({"sub": "ann", "exp": "soon"}), "bad_role"),
    ],
)
def test_a_token_that_names_nobody_is_refused(token: bytes, reason: str) -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        principal_of(ClientCredentials("token", token))
    assert refused.value.reason == reason
