from __future__ import annotations

from broker_core.access.sessions import ClientCredentials
from broker_core.upstream.kafka import identity_of


async def test_a_password_and_a_token_are_passed_on_as_they_are() -> None:
    basic = identity_of(ClientCredentials("basic", b"alice:pen:cil"))
    assert await basic.sasl.exchange().first() == b"\0alice\0pen:cil"
    token = identity_of(ClientCredentials("token", b"a.b.c"))
    assert b"Bearer a.b.c" in await token.sasl.exchange().first()


def test_clients_with_the_same_credentials_share_connections_and_show_nothing() -> None:
    one, same, other = (
        identity_of(ClientCredentials("basic", data))
        for data in (b"alice:secret", b"alice:secret", b"bob:secret")
    )
    assert one.key == same.key != other.key
    assert "secret" not in f"{one!r}"
