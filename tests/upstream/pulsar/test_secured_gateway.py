"""A whole gateway before a cluster with authentication and TLS: whose credentials arrive there, and what is shown."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from structlog.testing import capture_logs

from broker_core.broker import Broker
from broker_core.client import Credentials, HandshakeRefused, LookupSession, default_client_version
from broker_core.settings import Settings
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer
from tests.support.topics_answers import get_topics_response

SECRET = b"0123456789abcdef0123456789abcdef"


def token_of(role: str) -> str:
    return jwt.encode({"sub": role}, SECRET, "HS256")


def settings(url: str, **upstream: Any) -> Settings:
    key = base64.b64encode(SECRET).decode()
    return Settings.model_validate(
        {
            "pulsar": {"listen": "127.0.0.1:0"},
            "http": {"listen": "127.0.0.1:0"},
            "authentication": {
                "methods": ["token"],
                "token": {"key": f"data:;base64,{key}", "algorithms": ["HS256"]},
            },
            "authorization": {
                "rules": [{"roles": ["*"], "namespaces": ["*/*"], "actions": ["list", "lookup"]}]
            },
            "upstream": {"service_url": url, **upstream},
        }
    )


async def own_topic(peer: Peer, command: BaseCommand) -> None:
    """Each principal has one topic, by the text of its credentials or its name."""
    connect = peer.received[0].connect
    who = connect.original_principal or jwt.decode(connect.auth_data, SECRET, ["HS256"])["sub"]
    names = [f"persistent://t/n/of-{who}"]
    request_id = command.getTopicsOfNamespace.request_id
    peer.send(get_topics_response(request_id, names, topics_hash=None, filtered=False))


async def topics_of(broker: Broker, role: str) -> list[str]:
    host, port = broker.pulsar_address
    credentials = Credentials("token", token_of(role).encode)
    async with LookupSession(f"pulsar://{host}:{port}", credentials=credentials) as client:
        return (await client.get_topics("t/n")).topics


async def topics_over_http(broker: Broker, role: str, session: aiohttp.ClientSession) -> Any:
    assert broker.http_address is not None
    url = "http://{}:{}/admin/v2/persistent/t/n".format(*broker.http_address)
    async with session.get(url, headers={"Authorization": f"Bearer {token_of(role)}"}) as answer:
        return await answer.json()


@pytest.mark.parametrize("forward", ["gateway", "client"])
async def test_each_principal_sees_its_own_topics(tmp_path: Path, forward: str) -> None:
    authority = Authority(tmp_path)
    own = {"token": f"file:{tmp_path / 'own'}"} if forward == "gateway" else {}
    (tmp_path / "own").write_text("gateway-secret")
    given: dict[str, Any] = {"forward": forward, "tls": {"ca": str(authority.ca)}, **own}
    async with ScriptedServer(own_topic, tls=authority.issue("broker").server_context()) as server:
        with capture_logs() as logs:
            async with Broker(settings(server.url, **given)) as broker, aiohttp.ClientSession() as session:
                for _ in range(3):
                    for role in ("alice", "bob"):
                        assert await topics_of(broker, role) == [f"persistent://t/n/of-{role}"]
                assert broker.http_address is not None
                host, port = broker.http_address
                for _ in range(2):
                    for role in ("alice", "bob", "alice"):  # over one connection, as behind a proxy of HTTP
                        assert await topics_over_http(broker, role, session) == [
                            f"persistent://t/n/of-{role}"
                        ]
                async with session.get(f"http://{host}:{port}/metrics") as answer:
                    shown = await answer.text()
        assert 'broker_core_upstream_connects_total{outcome="connected"}' in shown
        for secret in ("gateway-secret", token_of("alice"), "alice", SECRET.decode()):
            assert secret not in shown
        for secret in ("gateway-secret", token_of("alice"), SECRET.decode()):
            assert secret not in str(logs)


async def test_ready_follows_the_brokers_where_it_is_set() -> None:
    server = ScriptedServer()
    await server.start(port := free_port())  # nobody else is given it while it is away
    try:
        async with Broker(settings(server.url, ready=True)) as broker, aiohttp.ClientSession() as session:
            assert broker.http_address is not None
            url = "http://{}:{}/-/ready".format(*broker.http_address)

            async def ready() -> tuple[int, dict[str, str]]:
                async with session.get(url) as answer:
                    return answer.status, await answer.json()

            assert await ready() == (200, {"status": "ready"})
            await server.stop()

            async def is_503() -> bool:
                status, body = await ready()
                return status == 503 and body["status"] == "upstream" and "cannot connect" in body["reason"]

            await eventually(is_503)
            server = ScriptedServer()
            await server.start(port)

            async def is_200() -> bool:
                return (await ready())[0] == 200

            await eventually(is_200)
    finally:
        await server.stop()


async def test_a_gateway_that_a_redirect_leads_back_to_knows_itself_and_its_like() -> None:
    async with ScriptedServer() as server, Broker(settings(server.url)) as broker:
        told = server.received[0].connect.client_version
        assert told.startswith(f"{default_client_version()}+")
        with pytest.raises(HandshakeRefused, match="is asked by a gateway of the same cluster"):
            async with LookupSession("pulsar://{}:{}".format(*broker.pulsar_address), client_version=told):
                pass
        async with Broker(settings(server.url)):  # a replica, which would ask this one in turn
            assert {each.connect.client_version for each in server.received} == {told}
    async with ScriptedServer() as other, Broker(settings(other.url)):  # one in front may well be a client
        assert other.received[0].connect.client_version != told


async def test_ready_stays_without_it() -> None:
    async with ScriptedServer() as server:
        broker = Broker(settings(server.url))
        await broker.start()
    try:
        assert broker._core is not None
        upstream = broker._core.upstream
        assert upstream is not None
        await eventually(lambda: upstream.cluster.problem is not None)
        async with aiohttp.ClientSession() as session:
            assert broker.http_address is not None
            async with session.get("http://{}:{}/-/ready".format(*broker.http_address)) as answer:
                assert answer.status == 200
    finally:
        await broker.stop()
