"""Watching the brokers: what they say of the gateway, going and coming back, and the start before a proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.asker import Asker
from broker_core.client import HandshakeRefused, LookupSession
from broker_core.errors import ServerError
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions, UpstreamUnusable
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.eventually import eventually
from tests.support.ports import free_ports
from tests.support.scripted_server import Peer, Script, ScriptedServer

OWN = {"token": "own"}


def broker(*, proxy_role: bool = True, verifies_originals: bool = False, token: bytes = b"own") -> Script:
    """A broker with authentication, as Pulsar decides."""

    async def script(peer: Peer, command: BaseCommand) -> None:
        connect = command.connect
        code, text = ServerError.AuthenticationError, "Failed to authenticate"
        if connect.auth_data != token or (
            verifies_originals and connect.HasField("original_principal") and not connect.original_auth_data
        ):
            pass
        elif proxy_role != connect.HasField("original_principal"):
            code, text = ServerError.AuthorizationError, "Invalid roles."
        else:
            peer.send(commands.connected("Pulsar Server4", protocol_version=21, max_message_size=5_242_880))
            return
        peer.send(commands.error(commands.CONNECTION_REQUEST_ID, code, text))
        await peer.writer.drain()
        peer.writer.close()

    return script


@asynccontextmanager
async def cluster_of(
    url: str, *, identifies: bool = True, start: bool = True, **upstream: Any
) -> AsyncIterator[UpstreamCluster]:
    options = UpstreamOptions(
        UpstreamSettings(service_url=url, **upstream), first_backoff=0.005, longest_backoff=0.02
    )
    cluster = UpstreamCluster(options, identifies=identifies)
    if start:
        await cluster.start(5)
    try:
        yield cluster
    finally:
        await cluster.stop()
        assert cluster.watch.connections == 0


@pytest.mark.parametrize(
    ("script", "upstream", "identifies"),
    [
        (broker(), OWN, True),
        (broker(proxy_role=False), OWN, False),
        (broker(verifies_originals=True), {**OWN, "original_auth_data": True}, True),
        (broker(), {"forward": "client"}, True),
    ],
)
async def test_a_broker_that_takes_the_gateway(script: Script, upstream: Any, identifies: bool) -> None:
    async with (
        ScriptedServer(script, handshake=False) as server,
        cluster_of(server.url, identifies=identifies, **upstream) as cluster,
    ):
        assert cluster.problem is None
        await cluster.probe(("127.0.0.1", server.port))


@pytest.mark.parametrize(
    ("script", "upstream", "identifies", "said"),
    [
        (broker(token=b"x"), OWN, True, "refuses the credentials of the gateway"),
        (broker(token=b"x"), {}, True, "refuses the credentials of the gateway"),
        (broker(proxy_role=False), OWN, True, "its role must be one of proxyRoles at the brokers"),
        (broker(), OWN, False, r"clients must be authenticated here \(\[authentication\]\)"),
        (broker(verifies_originals=True), OWN, True, "turn upstream.original_auth_data on"),
    ],
)
async def test_a_broker_that_refuses_the_gateway(
    script: Script, upstream: Any, identifies: bool, said: str
) -> None:
    async with (
        ScriptedServer(script, handshake=False) as server,
        cluster_of(server.url, identifies=identifies, **upstream) as cluster,
    ):
        with pytest.raises(HandshakeRefused, match=said):
            await cluster.probe(("127.0.0.1", server.port))
        assert "own" not in str(cluster.problem)
        assert cluster.problem is not None


async def test_a_proxy_is_refused_at_the_start() -> None:
    async def proxy(peer: Peer, _command: BaseCommand) -> None:
        peer.send(commands.connected("Pulsar Server4", protocol_version=21, max_message_size=None))

    async with (
        ScriptedServer(proxy, handshake=False) as server,
        cluster_of(server.url, start=False) as cluster,
    ):
        with pytest.raises(UpstreamUnusable, match="is a pulsar-proxy"):
            await cluster.start(5)
        assert cluster.places.taken == 0


async def test_an_address_that_is_down_by_mistake_comes_up_again() -> None:
    async with ScriptedServer() as server, cluster_of(server.url) as cluster:
        address = ("127.0.0.1", server.port)
        cluster.health.failed(address, "another attempt failed")
        assert cluster.problem == "another attempt failed"
        await eventually(lambda: cluster.problem is None)
        assert cluster.watch.connections == 1


async def test_an_address_is_not_down_for_want_of_credentials(tmp_path: Path) -> None:
    token = tmp_path / "token"
    async with ScriptedServer() as server, cluster_of(server.url, token=f"file:{token}") as cluster:
        assert list(cluster.health.states().values()) == ["unknown"]
        assert "token: No such file" in str(cluster.problem)
        assert not server.peers
        token.write_text("own")
        await eventually(lambda: cluster.problem is None)


async def test_a_token_that_becomes_a_bad_one_is_seen_with_the_next_client(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("own")

    async def ask(client: LookupSession) -> LookupSession:
        return client

    async with (
        ScriptedServer(broker(), handshake=False) as server,
        cluster_of(server.url, token=f"file:{token}") as cluster,
    ):
        await cluster.lookups.use(Asker(role="alice"), ask)
        token.write_text("other")
        with capture_logs() as logs:
            with pytest.raises(HandshakeRefused):
                await cluster.lookups.use(Asker(role="bob"), ask)
            await eventually(lambda: cluster.problem is not None)
            attempts = cluster.connector.counts["refused"]
            await eventually(lambda: cluster.connector.counts["refused"] >= attempts + 5)
        assert "refuses the credentials of the gateway" in str(cluster.problem)
        assert list(cluster.health.states().values()) == ["down"]
        assert [each["reason"] for each in logs if each["log_level"] == "warning"] == [cluster.problem]
        await cluster.lookups.use(Asker(role="alice"), ask)  # over the connection that it has
        token.write_text("own")
        await eventually(lambda: cluster.problem is None)
        await cluster.lookups.use(Asker(role="bob"), ask)


async def test_brokers_go_and_come_back() -> None:
    first, second = ScriptedServer(), ScriptedServer()
    port, other = free_ports(2)  # nobody else is given them while they are away
    await first.start(port)
    await second.start(other)
    try:
        async with cluster_of(f"pulsar://127.0.0.1:{port},127.0.0.1:{other}") as cluster:
            names = list(cluster.health.states())
            assert cluster.watch.connections == 2
            await first.stop()
            await eventually(lambda: cluster.health.states()[names[0]] == "down")
            assert cluster.problem is None, "one is left"
            await second.stop()
            await eventually(lambda: "cannot connect" in str(cluster.problem))
            first = ScriptedServer()
            await first.start(port)
            await eventually(lambda: cluster.problem is None)
            assert cluster.health.states()[names[0]] == "up"
    finally:
        await first.stop()
        await second.stop()
