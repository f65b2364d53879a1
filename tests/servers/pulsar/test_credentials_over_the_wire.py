"""Real tokens and passwords, over real connections: which get in, and that the wire does not say why others do not."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from broker_core.access.authentication import Authenticator
from broker_core.errors import ServerError
from broker_core.settings import AuthenticationSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.connection_questions import NAMESPACE, lister
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import RawClient
from tests.support.tokens import SECRET, b64, data_url, der, pem, rsa_key, token

#: Seconds that no test takes.
AGES = 3600


def authenticator(**settings: Any) -> Authenticator:
    token_settings = {"key": data_url(der(rsa_key())), **settings.pop("token", {})}
    return Authenticator(
        AuthenticationSettings.model_validate({"methods": ["token"], "token": token_settings, **settings})
    )


async def connect(
    s: Serving, data: bytes, method: str = "token", **fields: Any
) -> tuple[RawClient, BaseCommand]:
    client = await s.client(handshake=False)
    await client.send(commands.connect("v", auth_method_name=method, auth_data=data, **fields))
    return client, await client.receive()


def now() -> float:
    return time.time()


TOKENS: dict[str, tuple[Any, str | None]] = {
    "good": (lambda: token({"sub": "alice"}), None),
    "another algorithm of the key": (lambda: token({"sub": "alice"}, by="RS512"), "bad_token"),
    "another key": (lambda: token({"sub": "alice"}, key=rsa_key(1)), "bad_token"),
    "none": (lambda: b64({"alg": "none"}) + b"." + b64({"sub": "alice"}) + b".", "bad_token"),
    "a secret": (lambda: token({"sub": "alice"}, key=SECRET, by="HS256"), "bad_token"),
    "expired": (lambda: token({"sub": "alice", "exp": now() - 1}), "expired"),
    "not yet valid": (lambda: token({"sub": "alice", "nbf": now() + AGES}), "not_yet_valid"),
    "issued ahead": (lambda: token({"sub": "alice", "iat": now() + AGES}), None),
    "an audience that nobody asks for": (lambda: token({"sub": "alice", "aud": "x"}), None),
    "no subject": (lambda: token({}), "no_subject"),
    "a list of subjects": (lambda: token({"sub": ["alice"]}), "bad_token"),
    "64 KiB": (lambda: token({"sub": "alice", "x": "x" * 65536}), None),
    "a megabyte": (lambda: token({"sub": "alice", "x": "x" * 1_000_000}), None),
    "a megabyte of another key": (
        lambda: token({"sub": "alice", "x": "x" * 1_000_000}, key=rsa_key(1)),
        "bad_token",
    ),
    "nothing": (lambda: b"", "no_credentials"),
    "no token": (lambda: b"\xff.\x00.", "bad_token"),
    "Bearer": (lambda: b"Bearer " + token({"sub": "alice"}), "bad_token"),
}


@pytest.mark.parametrize("kind", TOKENS)
async def test_tokens(kind: str) -> None:
    make, reason = TOKENS[kind]
    async with serving(lister(), authenticator=authenticator()) as s:
        data = make()
        client, answer = await connect(s, data)
        if reason is None:
            assert answer.type == BaseCommand.CONNECTED
            assert (await client.ask(NAMESPACE)).topics
        else:
            error = answer.error
            assert (error.request_id, error.error) == (2**64 - 1, ServerError.AuthenticationError)
            assert error.message == "Failed to authenticate"
            assert await client.closed() == []
        assert s.sample("authentications_total", transport="pulsar", outcome=reason or "ok") == 1
        text = data.decode("latin-1")
        if text:
            assert text not in str(s.logs), "no token is logged"


@pytest.mark.parametrize("key", [der(rsa_key()), pem(rsa_key())])
async def test_a_token_signed_with_the_public_key_as_a_secret(key: bytes) -> None:
    async with serving(authenticator=authenticator()) as s:
        signed = b64({"alg": "HS256"}) + b"." + b64({"sub": "alice"})
        forged = signed + b"." + b64(hmac.digest(key, signed, hashlib.sha256))
        _, answer = await connect(s, forged)
        assert answer.error.message == "Failed to authenticate"


# -- passwords ------------------------------------------------------------------------------------------------


def of_passwords(tmp_path: Path) -> Authenticator:
    file = write_htpasswd(tmp_path / "htpasswd", alice="s3cret-a", bob="s3cret-b")
    return authenticator(methods=["token", "basic"], basic={"file": str(file)})


async def test_passwords(tmp_path: Path) -> None:
    async with serving(lister(), authenticator=of_passwords(tmp_path)) as s:
        for data in (b"alice:s3cret-a", b"bob:s3cret-b", b"alice:s3cret-a"):
            client, answer = await connect(s, data, "basic")
            assert answer.type == BaseCommand.CONNECTED
            assert (await client.ask(NAMESPACE)).topics
        for data in (b"alice:s3cret-b", b"nobody:s3cret-a", b"alice", b":", b"\xff:x"):
            _, answer = await connect(s, data, "basic")
            assert answer.error.message == "Failed to authenticate"
        assert s.sample("authentications_total", transport="pulsar", outcome="bad_password") == 5
        assert "s3cret" not in str(s.logs)


async def test_a_crowd_of_new_passwords_keeps_nobody_waiting(tmp_path: Path) -> None:
    file = tmp_path / "htpasswd"
    file.write_text(f"alice:{bcrypt.hashpw(b'right', bcrypt.gensalt(10)).decode()}\n")
    passwords = authenticator(methods=["token", "basic"], basic={"file": str(file)})
    async with serving(lister(), authenticator=passwords) as s:
        other, _ = await connect(s, token({"sub": "bob"}))
        crowd = [await s.client(handshake=False) for _ in range(40)]
        for number, client in enumerate(crowd):
            await client.send(commands.connect("v", auth_method_name="basic", auth_data=b"alice:%d" % number))
        await eventually(lambda: s.server.load.request_tasks)
        for _ in range(20):
            await other.ping()
        assert (await connect(s, token({"sub": "carol"})))[1].type == BaseCommand.CONNECTED
        assert s.server.load.request_tasks, "the passwords are still being verified"
        for client in crowd[1:]:
            client.vanish()
        await eventually(lambda: s.server.connections == 3)
        assert (await crowd[0].receive()).error.message == "Failed to authenticate"
        passwords.close()


async def test_many_clients_with_one_password_come_back_together(tmp_path: Path) -> None:
    passwords = of_passwords(tmp_path)
    async with serving(lister(), authenticator=passwords) as s:
        answers = await asyncio.gather(*(connect(s, b"alice:s3cret-a", "basic") for _ in range(100)))
        assert {answer.type for _, answer in answers} == {BaseCommand.CONNECTED}
        passwords.close()
