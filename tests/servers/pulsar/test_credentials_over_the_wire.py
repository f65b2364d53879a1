"""Real passwords, over real connections: which get in, and that the wire does not say why others do not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import bcrypt

from broker_core.access.authentication import Authenticator
from broker_core.settings import AuthenticationSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.connection_questions import lister
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import RawClient
from tests.support.tokens import data_url, der, rsa_key, token


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


def of_passwords(tmp_path: Path) -> Authenticator:
    file = write_htpasswd(tmp_path / "htpasswd", alice="s3cret-a", bob="s3cret-b")
    return authenticator(methods=["token", "basic"], basic={"file": str(file)})


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
