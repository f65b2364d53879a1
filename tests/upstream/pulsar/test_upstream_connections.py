"""Connections to the service URL, and to the brokers that a redirect names."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.access.connection_credentials import ClientCredentials, Sessions
from broker_core.client import ConnectionLost, CredentialsFailed, InvalidServiceUrl, LookupSession, TlsFailed
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions
from broker_core.upstream.pulsar.address_watch import PROBE
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.certificates import Authority
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.scripted_server import Peer, Script, ScriptedServer
from tests.upstream.pulsar.test_token_expiry import token

ASKER = Asker()


def partitions(number: int) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, number))

    return script


async def ask(client: LookupSession) -> int:
    return await client.partitioned_metadata("persistent://t/n/x", timeout=10)


@asynccontextmanager
async def cluster_of(
    url: str,
    *,
    sessions: Sessions | None = None,
    identifies: bool = True,
    upstream: Any = None,
    **options: Any,
) -> AsyncIterator[UpstreamCluster]:
    given = UpstreamOptions(
        UpstreamSettings(service_url=url, **(upstream or {})),
        first_backoff=0.005,
        longest_backoff=0.02,
        **{"connection_wait": 5.0, **options},
    )
    cluster = UpstreamCluster(given, sessions=sessions, identifies=identifies)
    await cluster.start(5)
    try:
        yield cluster
    finally:
        await cluster.stop()
        assert cluster.places.taken == 0
        assert cluster.places.waiting == 0
        assert cluster.lookups.connections == 0


async def test_a_redirect_is_asked_of_the_broker_that_it_names() -> None:
    async with ScriptedServer(partitions(1)) as service, ScriptedServer(partitions(2)) as broker:
        async with cluster_of(service.url) as cluster:
            connections = cluster.lookups
            assert await connections.use(ASKER, ask) == 1
            assert await connections.use(ASKER, ask, address=broker.url) == 2
            assert await connections.use(ASKER, ask, address=broker.url) == 2
            assert (len(service.peers), len(broker.peers)) == (2, 1), "one of the watch"
            with pytest.raises(InvalidServiceUrl):
                await connections.use(ASKER, ask, address="broker-3")
        with pytest.raises(ConnectionLost):
            await connections.use(ASKER, ask, address=broker.url)


async def test_a_redirect_without_tls_gets_no_credentials(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = authority.issue("broker").server_context()
    async with (
        ScriptedServer(partitions(1), tls=context) as service,
        ScriptedServer(partitions(2)) as plain,
        ScriptedServer(partitions(3), tls=context) as secured,
        cluster_of(service.url, upstream={"token": "secret", "tls": {"ca": authority.ca}}) as cluster,
    ):
        assert await cluster.lookups.use(ASKER, ask) == 1
        assert await cluster.lookups.use(ASKER, ask, address=secured.url) == 3
        with pytest.raises(TlsFailed, match="which has no TLS: credentials are not sent there"):
            await cluster.lookups.use(ASKER, ask, address=plain.url)
        assert not plain.peers


async def test_a_principal_that_the_brokers_hang_up_on_makes_no_address_go_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        if command.connect.auth_data == b"mallory":
            peer.abort()
        elif command.type == BaseCommand.CONNECT:
            peer.send(commands.connected("Broker", protocol_version=21, max_message_size=5_242_880))
        else:
            peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, 3))

    sessions = Sessions()
    alice, mallory = (Asker(role, connection=Connection()) for role in ("alice", "mallory"))
    for asker in (alice, mallory):
        sessions.put(asker, ClientCredentials("token", str(asker.role).encode()))
    async with (
        ScriptedServer(script, handshake=False) as server,
        cluster_of(
            server.url, sessions=sessions, upstream={"forward": "client"}, connection_wait=AGES
        ) as cluster,
    ):
        failures: list[str] = []
        cluster.health.failed = lambda address, reason: failures.append(f"{address}: {reason}")  # type: ignore[method-assign]
        of_mallory = asyncio.create_task(cluster.lookups.use(mallory, ask))
        await eventually(lambda: len(server.peers) > 1)
        time_passes(monkeypatch, AGES + 1)
        with pytest.raises(ConnectionLost):
            await of_mallory
        assert await cluster.lookups.use(alice, ask) == 3
        assert not failures
        assert cluster.problem is None


class Roles:
    """A broker that answers with a number of the principal, and notes the principals of each connection."""

    def __init__(self) -> None:
        self.asked: dict[Peer, set[str]] = {}

    async def __call__(self, peer: Peer, command: BaseCommand) -> None:
        connect = peer.received[0].connect
        who = connect.original_principal or connect.auth_data.decode()
        self.asked.setdefault(peer, set()).add(who)
        peer.send(
            commands.partitioned_metadata_response(
                command.partitionMetadata.request_id, int(who.rpartition("-")[2])
            )
        )


async def test_no_connection_is_shared_by_two_principals() -> None:
    roles = Roles()
    async with (
        ScriptedServer(roles) as server,
        cluster_of(server.url, upstream={"token": "own-0"}, connections=8, connection_wait=AGES) as cluster,
    ):
        chosen = random.Random(5)

        async def one() -> None:
            number = chosen.randrange(1, 40)
            asker = Asker(
                "proxy" if number % 2 else f"role-{number}", f"role-{number}" if number % 2 else None
            )
            assert await cluster.lookups.use(asker, ask) == number

        for _ in range(8):
            await asyncio.gather(*(one() for _ in range(50)))
            assert cluster.places.taken <= 8
            assert cluster.lookups.pools <= 39
        assert all(len(asked) == 1 for asked in roles.asked.values())
        assert cluster.lookups.closed["evicted"] > 0
        assert len(roles.asked) > 40


async def test_the_identity_of_the_gateway_and_its_client() -> None:
    async with (
        ScriptedServer(partitions(1)) as server,
        cluster_of(server.url, upstream={"token": "own"}) as cluster,
    ):
        assert cluster.lookups.forwards
        assert "principal" in cluster.lister.depends_on
        for asker in (Asker("alice"), Asker("proxy", "bob"), Asker()):
            await cluster.lookups.use(asker, ask)
        probe, *connects = [peer.received[0].connect for peer in server.peers]
        assert probe.original_principal == PROBE
        assert [each.original_principal for each in connects] == ["alice", "bob", ""]
        assert {(each.auth_method_name, each.auth_data) for each in connects} == {("token", b"own")}
        assert not any(each.HasField("original_auth_data") for each in connects)


async def test_without_credentials_of_its_own_the_gateway_names_nobody() -> None:
    async with ScriptedServer(partitions(1)) as server, cluster_of(server.url) as cluster:
        assert not cluster.lookups.forwards
        assert "principal" not in cluster.lister.depends_on
        await asyncio.gather(*(cluster.lookups.use(Asker(role), ask) for role in ("alice", "bob")))
        assert len(server.peers) == 2
        assert not any(peer.received[0].connect.HasField("original_principal") for peer in server.peers)


class Connection:
    """What a connection of a client is to the sessions."""


def session(
    sessions: Sessions, credentials: ClientCredentials, role: str, original: str | None = None
) -> tuple[Asker, Connection]:
    connection = Connection()
    asker = Asker(role, original, connection=connection)
    sessions.put(asker, credentials)
    return asker, connection


async def test_the_credentials_of_the_client_beside_those_of_the_gateway() -> None:
    sessions = Sessions()
    alice, kept = session(sessions, ClientCredentials("token", b"of-alice"), "alice")
    bob, kept_too = session(
        sessions, ClientCredentials("token", b"of-proxy", "basic", "bob:x"), "proxy", "bob"
    )
    carol, kept_as_well = session(sessions, ClientCredentials("tls", b""), "carol")
    upstream = {"token": "own", "original_auth_data": True}
    async with (
        ScriptedServer(partitions(1)) as server,
        cluster_of(server.url, sessions=sessions, upstream=upstream) as cluster,
    ):
        for asker in (alice, bob, carol):
            await cluster.lookups.use(asker, ask)
        _, of_alice, of_bob, of_carol = [peer.received[0].connect for peer in server.peers]
        assert (of_alice.original_principal, of_alice.original_auth_method, of_alice.original_auth_data) == (
            "alice",
            "token",
            "of-alice",
        )
        assert (of_bob.original_principal, of_bob.original_auth_method, of_bob.original_auth_data) == (
            "bob",
            "basic",
            "bob:x",
        )
        assert of_carol.original_principal == "carol"
        assert not of_carol.HasField("original_auth_data")
        assert {each.auth_data for each in (of_alice, of_bob, of_carol)} == {b"own"}
    del kept, kept_too, kept_as_well


async def test_the_credentials_of_the_client_alone() -> None:
    sessions = Sessions()
    alice, kept = session(sessions, ClientCredentials("token", b"of-alice"), "alice")
    bob, kept_too = session(
        sessions, ClientCredentials("token", b"of-proxy", "token", "of-bob"), "proxy", "bob"
    )
    async with (
        ScriptedServer(partitions(1)) as server,
        cluster_of(server.url, sessions=sessions, upstream={"forward": "client"}) as cluster,
    ):
        await cluster.lookups.use(alice, ask)
        await cluster.lookups.use(bob, ask)
        probe, of_alice, of_bob = [peer.received[0].connect for peer in server.peers]
        assert not probe.HasField("auth_data")
        assert (of_alice.auth_method_name, of_alice.auth_data) == ("token", b"of-alice")
        assert not of_alice.HasField("original_principal")
        assert (of_bob.auth_data, of_bob.original_principal, of_bob.original_auth_data) == (
            b"of-proxy",
            "bob",
            "of-bob",
        )
        # As one whose connection has ended while others of the principal wait for the same lookup.
        await cluster.lookups.use(Asker("alice"), ask)
        with pytest.raises(CredentialsFailed, match="no credentials of this client"):
            await cluster.lookups.use(Asker("carol"), ask)
        with pytest.raises(CredentialsFailed, match="no credentials of this client"):
            await cluster.lookups.use(Asker(), ask)
    del kept, kept_too


async def test_connections_end_with_the_last_session_of_their_principal() -> None:
    sessions = Sessions()
    first, kept = session(sessions, ClientCredentials("token", b"of-alice"), "alice")
    second, kept_too = session(sessions, ClientCredentials("token", b"of-alice-2"), "alice")
    async with (
        ScriptedServer(partitions(1)) as server,
        cluster_of(server.url, sessions=sessions, upstream={"forward": "client"}) as cluster,
    ):
        await cluster.lookups.use(first, ask)
        await cluster.lookups.use(second, ask)
        assert cluster.lookups.connections == 1
        sessions.end(first)
        cluster.lookups.sweep()
        assert cluster.lookups.connections == 1
        sessions.end(second)
        cluster.lookups.sweep()
        assert (cluster.lookups.connections, cluster.lookups.pools) == (0, 0)
        assert cluster.lookups.closed["gone"] == 1
        await eventually(server.peers[-1].reader.at_eof)
    del kept, kept_too


async def test_connections_end_with_the_credentials_of_their_principal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sessions = Sessions()
    expires = time.time() + 100
    alice, kept = session(
        sessions, ClientCredentials("token", token({"sub": "alice", "exp": expires})), "alice"
    )
    async with (
        ScriptedServer(partitions(1)) as server,
        cluster_of(server.url, sessions=sessions, upstream={"forward": "client"}) as cluster,
    ):
        await cluster.lookups.use(alice, ask)
        cluster.lookups.sweep()
        assert cluster.lookups.connections == 1
        monkeypatch.setattr(time, "time", partial(float, expires + 1))
        cluster.lookups.sweep()
        assert cluster.lookups.connections == 0
    del kept


async def test_idle_connections_are_closed_but_the_gateway_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        ScriptedServer(partitions(1)) as server,
        cluster_of(server.url, upstream={"token": "own"}) as cluster,
    ):
        await cluster.lookups.use(Asker("alice"), ask)
        await cluster.lookups.use(Asker(), ask)
        cluster.lookups.sweep()
        assert cluster.lookups.connections == 2
        time_passes(monkeypatch, 61)
        cluster.lookups.sweep()
        assert (cluster.lookups.connections, cluster.lookups.closed["idle"]) == (1, 1)
        assert await cluster.lookups.use(Asker("alice"), ask) == 1


async def test_a_connection_in_use_is_not_taken_from_its_principal() -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer, command: BaseCommand) -> None:
        await go_on.wait()
        await partitions(1)(peer, command)

    async with (
        ScriptedServer(script) as server,
        cluster_of(server.url, upstream={"token": "own"}, connections=2) as cluster,
    ):
        asked = [
            asyncio.create_task(cluster.lookups.use(Asker(f"role-{number}"), ask)) for number in range(4)
        ]
        await eventually(lambda: cluster.places.waiting == 2)
        assert cluster.lookups.closed["evicted"] == 0
        go_on.set()
        assert await asyncio.gather(*asked) == [1] * 4
        assert cluster.places.taken <= 2
        assert cluster.lookups.closed["evicted"] >= 2
