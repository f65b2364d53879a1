from __future__ import annotations

import base64
from pathlib import Path
from typing import Literal

import pytest

from broker_core.client import CredentialsFailed
from broker_core.client.kafka.kafka_errors import SaslAuthenticationException
from broker_core.client.kafka.sasl import OAuthBearer, Plain, Sasl, Scram
from broker_core.kafka.scram.credentials import derive_credential
from broker_core.kafka.scram.exchange import ScramExchange
from broker_core.kafka.scram.messages import ClientFirst


async def sent(sasl: Sasl) -> list[bytes]:
    """The messages to a server whose answers are empty."""
    return [message async for message in sasl.exchange()]


async def test_plain() -> None:
    assert await sent(Plain("größe", "pass word")) == ["\0größe\0pass word".encode()]


async def test_a_password_of_a_function() -> None:
    async def password() -> str:
        return "later"

    assert await sent(Plain("a", password)) == [b"\0a\0later"]


@pytest.mark.parametrize("wrong", [lambda: 7, lambda: 1 / 0, lambda: "a\0b"])
async def test_a_function_that_gives_no_password(wrong: object) -> None:
    with pytest.raises(CredentialsFailed):
        await sent(Plain("a", wrong))  # type: ignore[arg-type]


def test_a_name_that_cannot_be_sent() -> None:
    with pytest.raises(CredentialsFailed):
        Plain("a\0b", "secret")


async def test_a_token() -> None:
    assert await sent(OAuthBearer("a.b.c")) == [b"n,,\x01auth=Bearer a.b.c\x01\x01"]


async def test_a_token_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a.b.c\n")
    [message] = await sent(OAuthBearer(tmp_path / "token"))
    assert b"Bearer a.b.c\x01" in message


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b'{"status":"invalid_token"}', "invalid_token"),
        (b"no json", "no reason given"),
        (b"[" * 100_000, "no reason given"),
        (b"7", "no reason given"),
    ],
)
async def test_a_token_that_is_not_taken(answer: bytes, said: str) -> None:
    exchange = OAuthBearer("a.b.c").exchange()
    await anext(exchange)
    assert await exchange.asend(answer) == b"\x01"
    with pytest.raises(SaslAuthenticationException, match=said):
        await exchange.asend(b"")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_scram_with_a_server(mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]) -> None:
    exchange = Scram("alice", "secret", mechanism=mechanism).exchange()
    credential = derive_credential(mechanism, b"secret", iterations=4096)
    server = ScramExchange(ClientFirst.parse(await anext(exchange)), credential)
    proof = await exchange.asend(server.first())
    with pytest.raises(StopAsyncIteration):
        await exchange.asend(server.final(proof))


async def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    exchange = Scram("alice", "secret").exchange()
    credential = derive_credential("SCRAM-SHA-512", b"secret", iterations=4096)
    server = ScramExchange(ClientFirst.parse(await anext(exchange)), credential)
    await exchange.asend(server.first())
    with pytest.raises(SaslAuthenticationException, match="does not know the credential"):
        await exchange.asend(b"v=" + base64.b64encode(bytes(64)))


async def test_a_server_of_scram_that_breaks_the_rules() -> None:
    exchange = Scram("alice", "secret").exchange()
    assert (await anext(exchange)).startswith(b"n,,n=alice,r=")
    with pytest.raises(SaslAuthenticationException, match="SCRAM-SHA-512"):
        await exchange.asend(b"r=other,s=c2FsdA==,i=4096")


def test_another_mechanism() -> None:
    with pytest.raises(ValueError, match="SCRAM-SHA-1"):
        Scram("alice", "secret", mechanism="SCRAM-SHA-1")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sasl", [Plain("a", "secret"), Scram("a", "secret"), OAuthBearer("secret")], ids=repr
)
def test_no_secret_is_shown(sasl: Sasl) -> None:
    assert "secret" not in repr(sasl)
