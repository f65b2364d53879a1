"""`broker-core clients` and `clients disconnect`, by the operator's socket of a running server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from broker_core.cli.commands.operate.clients import client_row, clients_path
from broker_core.client import ConnectionLost, LookupSession
from tests.cli.conftest import Cli
from tests.support.api_serving import api_served
from tests.support.eventually import eventually


async def test_show_and_disconnect(cli: Cli, tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    async with api_served(tmp_path, admin={"socket": str(socket)}) as served:
        host, port = served.broker.pulsar_address

        async def said(*words: str) -> str:
            done = await asyncio.to_thread(cli, "clients", *words, "--broker", f"unix:{socket}")
            assert done.code == 0, done.err
            return done.out

        assert await said() == "no client is connected\n"
        async with LookupSession(f"pulsar://{host}:{port}") as session:
            await session.get_topics("public/default")
            assert "public/default" in await said()
            assert await said("--namespace", "acme/*") == "no such client\n"
            (client,) = json.loads(await said("--format", "json", "--order", "memory"))
            assert (await said("disconnect", "--role", "batch")).endswith("disconnected: 0 clients\n")
            assert (await said("disconnect", "--address", client["address"])).endswith(
                "disconnected: 1 client\n"
            )
            await eventually(lambda: not len(served.broker._clients))
            with pytest.raises(ConnectionLost):
                await session.get_topics("public/default")


async def test_the_operators_socket_answers_though_clients_have_no_api(cli: Cli, tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    async with api_served(tmp_path, admin={"socket": str(socket)}, http={"api": False}):
        for words in (["clients"], ["clients", "disconnect", "--role", "r"], ["top", "--once"]):
            said = await asyncio.to_thread(cli, *words, "--broker", f"unix:{socket}")
            assert said.code == 0, said.err


def test_disconnect_must_name_somebody(cli: Cli) -> None:
    assert "say which clients: --role, --address or --namespace" in cli(
        "clients", "disconnect", "--broker", "unix:/nowhere"
    ).failed(2)


def test_a_wrong_order(cli: Cli) -> None:
    said = cli("clients", "--order", "size", "--broker", "unix:/nowhere").err
    assert said.startswith("broker-core: clients: Invalid value for '--order': 'size' is not one of 'age'")


async def test_what_can_mean_nobody_is_refused(cli: Cli, tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    async with api_served(tmp_path, admin={"socket": str(socket)}):
        for option, value, why in (
            ("--role", "", "parameter role must be a role, such as team-*, not empty"),
            (
                "--namespace",
                "acme",
                "parameter namespace must be TENANT/NAMESPACE, such as acme/*, not 'acme'",
            ),
            ("--address", "localhost", "parameter address must be an address such as 192.0.2.7, "),
        ):
            words = ("clients", "disconnect", option, value, "--broker", f"unix:{socket}")
            said = await asyncio.to_thread(cli, *words)
            assert said.code == 1
            assert said.err.startswith(f"broker-core: {socket}: HTTP status 400: {why}")


def test_what_is_not_given_is_not_in_the_path() -> None:
    assert clients_path(role=None, namespace="a/*", limit=1) == "/v1/server/clients?namespace=a%2F%2A&limit=1"


def test_a_row_says_how_many_more_there_are() -> None:
    asks = [{"operation": "LOOKUP", "namespace": "a/b", "seconds": 0.5}] * 20
    row = client_row(
        {
            "transport": "pulsar",
            "address": "192.0.2.7:1",
            "role": "proxy",
            "original_principal": "alice",
            "client_version": "x",
            "age_seconds": 1.2,
            "asks": asks,
            "under_way": 50,
            "namespaces": ["a/b"],
            "memory_bytes": 10,
            "requests_per_second": 1.0,
            "bytes_per_second": 2.0,
        }
    )
    assert row[1] == "proxy for alice"
    assert str(row[5]).splitlines() == ["LOOKUP a/b 0.5s"] * 3 + ["and 47 more"]
