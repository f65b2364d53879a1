"""A whole server that authenticates: its pages, its listings, the command line, and what shows nothing of a secret."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from broker_core.broker import Broker
from broker_core.cli.options.credentials import GivenCredentials
from broker_core.cli.running_broker import BrokerUnreachable, get
from broker_core.client import Credentials, LookupSession, ServerRefused
from broker_core.errors import ServerError
from broker_core.quantities import ListenAddress
from broker_core.servers.http import ProtectedFromAll
from broker_core.settings import Settings
from tests.cli.conftest import Cli
from tests.support.files import file_with
from tests.support.plugins import PluginOf
from tests.support.tokens import SECRET, data_url, token

RULES = {
    "super_roles": ["root"],
    "rules": [
        {"roles": ["team-a"], "namespaces": ["acme/*"], "actions": ["list", "admin"]},
        {"roles": ["team-b"], "namespaces": ["acme/*"], "actions": ["lookup"]},
    ],
}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    return {
        "pulsar": {"listen": "127.0.0.1:0"},
        "http": {"listen": "127.0.0.1:0", "questions": True},
        "catalog": {"path": tmp_path / "topics.sqlite"},
        "authentication": {
            "methods": ["token"],
            "token": {"key": data_url(SECRET), "algorithms": ["HS256"]},
        },
        "authorization": RULES,
    }


def made(role: str, **claims: Any) -> bytes:
    return token({"sub": role, **claims}, key=SECRET, by="HS256")


class Site:
    def __init__(self, broker: Broker, folder: Path) -> None:
        self._folder = folder
        assert broker.http_address is not None
        self.http = f"http://{ListenAddress(*broker.http_address)}"
        self.pulsar = f"pulsar://{ListenAddress(*broker.pulsar_address)}"

    def token_file(self, role: str, **claims: Any) -> Path:
        return file_with(self._folder / f"{role}.token", made(role, **claims) + b"\n")

    async def get(self, path: str, role: str | None = None, **claims: Any) -> str:
        given = GivenCredentials(None if role is None else self.token_file(role, **claims))
        return await asyncio.to_thread(get, self.http, path, credentials=given)

    async def topics(self, namespace: str, role: str) -> list[str]:
        data = made(role)
        async with LookupSession(self.pulsar, credentials=Credentials("token", lambda: data)) as client:
            return (await client.get_topics(namespace)).topics


@asynccontextmanager
async def site(tables: dict[str, Any], folder: Path) -> AsyncIterator[Site]:
    async with Broker(Settings(**tables)) as broker:
        assert broker.catalog is not None
        from broker_core.names import TopicName

        for name in ("persistent://acme/shop/a", "persistent://other/shop/b"):
            await asyncio.to_thread(broker.catalog.create, TopicName.parse(name))
        yield Site(broker, folder)


async def refused(asking: Any, status: int, text: str = "") -> None:
    with pytest.raises(BrokerUnreachable, match=f"HTTP status {status}.*{text}"):
        await asking


async def test_each_role_sees_its_own(tables: dict[str, Any], tmp_path: Path) -> None:
    async with site(tables, tmp_path) as there:
        assert await there.topics("acme/shop", "team-a") == ["persistent://acme/shop/a"]
        assert await there.topics("other/shop", "root") == ["persistent://other/shop/b"]
        for role, namespace in (("team-a", "other/shop"), ("team-b", "acme/shop"), ("team-a", "none/none")):
            with pytest.raises(ServerRefused) as caught:
                await there.topics(namespace, role)
            assert caught.value.code is ServerError.AuthorizationError
        questions = [
            json.loads(line)["namespace"] for line in (await there.get("/questions", "team-a")).splitlines()
        ]
        assert questions == ["acme/shop"]
        questions = [
            json.loads(line)["namespace"] for line in (await there.get("/questions", "root")).splitlines()
        ]
        assert sorted(questions) == ["acme/shop", "other/shop"]
        assert "broker_core_build_info" in await there.get("/metrics")
        assert json.loads(await there.get("/plugins", "root")) == {"plugins": []}
        await refused(
            there.get("/questions", "team-b"), 403, "'team-b' has no right to monitor in any namespace"
        )
        await refused(there.get("/plugins", "team-a"), 403)
        await refused(there.get("/plugins"), 401)
        await refused(there.get("/plugins", "root", exp=time.time() - 60), 401, "Failed to authenticate")
        metrics = await there.get("/metrics")
        for outcome, count in (("ok", 5), ("no_credentials", 1), ("expired", 1)):
            sample = f'broker_core_authentications_total{{outcome="{outcome}",transport="http"}} {count}.0'
            assert sample in metrics


async def test_all_pages_are_protected(tables: dict[str, Any], tmp_path: Path) -> None:
    tables["http"]["protect"] = True
    async with site(tables, tmp_path) as there:
        for path in ("/metrics", "/-/live", "/-/ready"):
            await refused(there.get(path), 401)
            assert await there.get(path, "root")
        assert await there.get("/-/ready", "team-b")
        await refused(there.get("/metrics", "team-b"), 403)


async def test_commands_ask_with_a_token(tables: dict[str, Any], tmp_path: Path, cli: Cli) -> None:
    async with site(tables, tmp_path) as there:
        file = there.token_file("root")
        for command in (
            ("plugins", "--broker", there.http),
            ("spark", "patterns", "export", "--broker", there.http, "--min-count", "1"),
            ("list", "acme/shop", "--url", there.pulsar),
        ):
            said = await asyncio.to_thread(cli, *command)
            assert said.code == 1, command
            assert "credentials are needed here" in said.err or "Failed to authenticate" in said.err
            assert said.err.endswith("; ask with --token-file FILE, --user NAME or --cert FILE\n")
            said = await asyncio.to_thread(cli, *command, "--token-file", file)
            assert said.code == 0, said.err
        said = await asyncio.to_thread(
            cli, "list", "acme/shop", "--url", there.pulsar, "--token-file", there.token_file("team-b")
        )
        assert "Role 'team-b' has no right to list in namespace acme/shop" in said.err
        assert (await asyncio.to_thread(cli, "list", "a/b", "--url", there.pulsar, "--ca", file)).code == 1


async def test_nothing_of_a_token_is_shown(
    tables: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with site(tables, tmp_path) as there:
        good, wrong = made("team-b").decode(), made("team-b", exp=1).decode()
        for text in (good, wrong, wrong + "x"):
            (tmp_path / "t").write_text(text)
            given = GivenCredentials(tmp_path / "t")
            with pytest.raises(BrokerUnreachable) as caught:
                await asyncio.to_thread(get, there.http, "/plugins", credentials=given)
            shown = str(caught.value) + await there.get("/metrics") + "".join(capfd.readouterr())
            assert all(part not in shown for part in text.split(".")), "a part of a token is shown"


async def test_a_server_that_protects_from_all_does_not_start(tables: dict[str, Any]) -> None:
    del tables["authentication"]
    tables["http"]["protect"] = True
    tables["plugins"] = {"enabled": ["plain"]}
    broker = Broker(Settings(**tables), plugins={"plain": PluginOf(version=lambda: "1")})
    with pytest.raises(ProtectedFromAll):
        await broker.start()
