"""`broker-core shrink-guard`: what a running server holds, and letting it pass, by the operator's socket."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.client import LookupSession, ServerRefused
from broker_core.settings import Settings
from tests.cli.conftest import Cli
from tests.support.fake_cluster import FakeCluster

NAMES = [f"persistent://t/n/topic-{index:03d}" for index in range(50)]


async def test_list_and_accept(cli: Cli, tmp_path: Path) -> None:
    socket = f"unix:{tmp_path / 'admin.sock'}"
    async with FakeCluster() as cluster:
        cluster.topics["t/n"] = list(NAMES)
        settings = Settings.model_validate(
            {
                "pulsar": {"listen": "127.0.0.1:0"},
                "admin": {"socket": str(tmp_path / "admin.sock")},
                "upstream": {"service_url": cluster.url},
            }
        )
        async with Broker(settings) as broker:
            host, port = broker.pulsar_address

            async def topics() -> list[str]:
                """What a client gets first, which is never older than its connection."""
                async with LookupSession(f"pulsar://{host}:{port}") as client:
                    return sorted((await client.get_topics("t/n")).topics)

            async def asked(*words: str) -> str:
                said = await asyncio.to_thread(cli, "shrink-guard", *words, "--broker", socket)
                assert said.code == 0, said.err
                return said.out

            assert await topics() == NAMES
            assert await asked("list") == "nothing is held\n"
            assert "nothing of t/typo is held: " in await asked("accept", "t/typo")
            del cluster.topics["t/n"][5:]
            with pytest.raises(ServerRefused, match="45 of 50 topics"):
                await topics()
            assert "t/n" in await asked("list")
            (held,) = json.loads(await asked("list", "--format", "json"))
            assert held["missing"] == 45
            assert "accepted: 1 held listing of t/n" in await asked("accept", "t/n")
            assert await topics() == NAMES[:5]


def test_what_is_no_namespace(cli: Cli) -> None:
    assert "namespace" in cli("shrink-guard", "accept", "t", "--broker", "unix:/nowhere").failed(2).lower()
