"""The clients of all protocols over HTTP, and disconnecting them: rights, filters, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from broker_core.client import ConnectionLost, LookupClient, LookupSession
from broker_core.client.kafka import AdminClient
from tests.support.api_serving import ApiServed, api_served
from tests.support.eventually import eventually
from tests.support.htpasswd import write_htpasswd

CLIENTS = "/v1/server/clients"


def credentials(role: str) -> dict[str, str]:
    return {"Authorization": aiohttp.encode_basic_auth(role, "secret")}


def pulsar_url(served: ApiServed) -> str:
    host, port = served.broker.pulsar_address
    return f"pulsar://{host}:{port}"


async def test_clients_of_all_protocols_are_in_one_list(tmp_path: Path) -> None:
    async with api_served(tmp_path, kafka={"listen": "127.0.0.1:0"}) as served:
        assert served.broker.kafka_address is not None
        host, port = served.broker.kafka_address
        async with LookupSession(pulsar_url(served)) as session, AdminClient(f"{host}:{port}") as admin:
            await session.get_topics("public/default")
            await admin.list_topics()
            said = (await served.ask(CLIENTS)).json
            by_transport = {each["transport"]: each for each in said["items"]}
            assert said["total"] == len(said["items"])
            assert set(by_transport) == {"pulsar", "kafka", "http"}
            pulsar = by_transport["pulsar"]
            assert pulsar["namespaces"] == ["public/default"]
            assert pulsar["client_version"].startswith("broker-core-")
            assert pulsar["requests_per_second"] > 0
            assert pulsar["bytes_per_second"] > 0
            http = by_transport["http"]
            assert [each["operation"] for each in http["asks"]] == ["listClients"]
            assert http["under_way"] == 1
            for order in ("requests", "bytes", "memory"):
                assert (await served.ask(f"{CLIENTS}?order={order}&limit=1")).json["total"] == said["total"]
            only = (await served.ask(f"{CLIENTS}?namespace=public/*&address={pulsar['address']}")).json
            assert [each["transport"] for each in only["items"]] == ["pulsar"]
            async with aiohttp.ClientSession() as other, other.get(served.url + CLIENTS) as response:
                assert (await response.json())["total"] == said["total"] + 1
        await eventually(lambda: len(served.broker._clients) == 1)  # that of HTTP itself


@pytest.mark.parametrize(
    "query", ["address=nowhere", "order=size", "limit=0", "name=x", "role=", "namespace=", "namespace=acme"]
)
async def test_a_wrong_parameter(served: ApiServed, query: str) -> None:
    assert (await served.ask(f"{CLIENTS}?{query}")).status == 400


async def test_without_rights_the_operators_socket_alone_disconnects(tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    async with (
        api_served(tmp_path, admin={"socket": str(socket)}) as served,
        LookupSession(pulsar_url(served)) as session,
    ):
        await session.get_topics("public/default")
        said = await served.ask(f"{CLIENTS}/disconnect?address=127.0.0.1", "POST")
        assert (said.status, said.json["cause"]) == (403, "NOT_ALLOWED")
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket))) as operator:

            async def disconnect(query: str) -> tuple[int, Any]:
                async with operator.post(f"http://x{CLIENTS}/disconnect{query}") as response:
                    return response.status, await response.json()

            status, told = await disconnect("")
            assert (status, "say which clients" in told["detail"]) == (400, True)
            assert await disconnect("?namespace=acme/other") == (200, {"disconnected": 0})
            with capture_logs() as logs:
                assert await disconnect("?namespace=public/default") == (200, {"disconnected": 1})
        (line,) = [each for each in logs if each["event"] == "audit"]
        assert (line["action"], line["outcome"], line["transport"]) == (
            "disconnect_clients",
            "done",
            "operator",
        )
        assert (line["target"], line["disconnected"]) == ("namespace=public/default", 1)
        await eventually(lambda: served.sample("connections_closed_total", reason="operator") == 1)
        with pytest.raises(ConnectionLost):
            await session.get_topics("public/default")


async def test_monitor_looks_and_admin_of_all_namespaces_disconnects(tmp_path: Path) -> None:
    users = tmp_path / "users"
    roles = ("looker", "chief", "of-a-team", "nobody")
    write_htpasswd(users, **dict.fromkeys(roles, "secret"))
    tables: dict[str, Any] = {
        "authentication": {"methods": ["basic"], "basic": {"file": str(users)}},
        "authorization": {
            "rules": [
                {"roles": ["looker"], "namespaces": ["*"], "actions": ["monitor"]},
                {"roles": ["chief"], "namespaces": ["*"], "actions": ["admin"]},
                {"roles": ["of-a-team"], "namespaces": ["public/*"], "actions": ["admin"]},
            ]
        },
    }
    async with api_served(tmp_path, **tables) as served:

        async def status(role: str, path: str, method: str = "GET") -> int:
            said = await served.ask(path, method, headers=credentials(role))
            return said.status

        assert [await status(role, CLIENTS) for role in roles] == [200, 200, 403, 403]
        path = f"{CLIENTS}/disconnect?role=somebody"
        assert [await status(role, path, "POST") for role in roles] == [403, 200, 403, 403]
        assert (await served.ask(CLIENTS)).status == 401
        assert served.sample("denials_total", action="admin", by="rules") == 3
        shown = await served.ask(CLIENTS, headers=credentials("looker"))
        assert shown.json["items"][0]["role"] == "looker"


async def test_a_connection_does_not_end_itself(tmp_path: Path) -> None:
    tables: dict[str, Any] = {"authorization": {"mode": "rules", "super_roles": ["boss"]}}
    users = tmp_path / "users"
    write_htpasswd(users, boss="secret")
    tables["authentication"] = {"methods": ["basic"], "basic": {"file": str(users)}}
    async with api_served(tmp_path, **tables) as served:
        headers = credentials("boss")
        said = await served.ask(f"{CLIENTS}/disconnect?role=*", "POST", headers=headers)
        assert (said.status, said.json) == (200, {"disconnected": 0})


async def test_a_client_that_is_disconnected_may_connect_again(tmp_path: Path) -> None:
    socket = tmp_path / "admin.sock"
    async with (
        api_served(tmp_path, admin={"socket": str(socket)}) as served,
        LookupClient(pulsar_url(served)) as client,
    ):
        before = (await client.get_topics_under_namespace("public/default")).names
        connector = aiohttp.UnixConnector(str(socket))
        async with (
            aiohttp.ClientSession(connector=connector) as operator,
            operator.post(f"http://x{CLIENTS}/disconnect?address=127.0.0.1") as response,
        ):
            assert (await response.json())["disconnected"] == 1
        assert (await client.get_topics_under_namespace("public/default")).names == before
