"""Credentials in CONNECT and in answer to challenges, and the principal that a proxy asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from broker_core.client.client_errors import ConnectionLost, CredentialsFailed
from broker_core.client.pulsar.credentials import Credentials, OriginalPrincipal
from broker_core.client.pulsar.lookup_connection import LookupConnection
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import AuthData, BaseCommand
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.scripted_server import Peer, ScriptedServer

TOPIC = "persistent://t/n/x"


async def open_to(server: ScriptedServer, **options: object) -> LookupConnection:
    return await LookupConnection.open(("127.0.0.1", server.port), client_version="Test-1", **options)  # type: ignore[arg-type]


async def partitions(connection: LookupConnection) -> int:
    answer = await connection.request(
        lambda request_id: commands.partitioned_metadata(request_id, TOPIC),
        BaseCommand.PARTITIONED_METADATA_RESPONSE,
        timeout=AGES,
    )
    assert isinstance(answer, BaseCommand)
    return answer.partitionMetadataResponse.partitions


def challenge() -> bytes:
    command = BaseCommand(type=BaseCommand.AUTH_CHALLENGE)
    command.authChallenge.challenge.CopyFrom(
        AuthData(auth_method_name="token", auth_data=b"PulsarAuthRefresh")
    )
    return commands.encode(command)


async def challenging(peer: Peer, command: BaseCommand) -> None:
    """Each question is answered once the client has answered a challenge."""
    if command.type == BaseCommand.PARTITIONED_METADATA:
        peer.send(challenge())
    else:
        peer.send(commands.partitioned_metadata_response(0, 5))


def responses(server: ScriptedServer) -> list[tuple[str, bytes]]:
    return [
        (each.authResponse.response.auth_method_name, each.authResponse.response.auth_data)
        for each in server.received
        if each.type == BaseCommand.AUTH_RESPONSE
    ]


@pytest.mark.parametrize("is_async", [False, True])
async def test_credentials_are_sent_and_asked_for_anew(is_async: bool) -> None:
    tokens = iter([b"first", b"second"])

    def now() -> bytes:
        return next(tokens)

    async def later() -> bytes:
        await asyncio.sleep(0)
        return next(tokens)

    async with ScriptedServer(challenging) as server:
        connection = await open_to(server, credentials=Credentials("token", later if is_async else now))
        assert await partitions(connection) == 5
        connect = server.received[0].connect
        assert (connect.auth_method_name, connect.auth_data) == ("token", b"first")
        assert connect.feature_flags.supports_auth_refresh
        assert not connect.HasField("original_principal")
        assert responses(server) == [("token", b"second")]
        await connection.close()


async def test_a_proxy_names_the_principal_that_it_asks_for() -> None:
    async with ScriptedServer() as server:
        connection = await open_to(
            server, credentials=Credentials("token", lambda: b"own"), original=OriginalPrincipal("alice")
        )
        connect = server.received[0].connect
        assert (connect.original_principal, connect.auth_data) == ("alice", b"own")
        assert not connect.HasField("original_auth_data")
        assert not connect.HasField("original_auth_method")
        await connection.close()


async def test_a_server_that_has_the_principals_credentials_asks_for_these_again() -> None:
    original = OriginalPrincipal("alice", Credentials("basic", lambda: b"alice:secret"))
    async with ScriptedServer(challenging) as server:
        connection = await open_to(
            server, credentials=Credentials("token", lambda: b"own"), original=original
        )
        assert await partitions(connection) == 5
        connect = server.received[0].connect
        assert (connect.original_auth_method, connect.original_auth_data) == ("basic", "alice:secret")
        assert responses(server) == [("basic", b"alice:secret")]
        await connection.close()


async def test_one_challenge_at_a_time() -> None:
    go_on = asyncio.Event()
    made = 0

    async def slow() -> bytes:
        nonlocal made
        made += 1
        if made > 1:
            await go_on.wait()
        return b"token"

    async def script(peer: Peer, command: BaseCommand) -> None:
        if command.type == BaseCommand.PARTITIONED_METADATA:
            peer.send(challenge() + challenge())
        else:
            peer.send(commands.partitioned_metadata_response(0, 5))

    async with ScriptedServer(script) as server:
        connection = await open_to(server, credentials=Credentials("token", slow))
        asked = asyncio.create_task(partitions(connection))
        await eventually(lambda: made == 2)
        go_on.set()
        assert await asked == 5
        assert len(responses(server)) == 1
        await connection.close()


@pytest.mark.parametrize("calls_before", [0, 1])
async def test_without_credentials_there_is_no_connection(calls_before: int) -> None:
    calls = 0

    def source() -> bytes:
        nonlocal calls
        calls += 1
        if calls > calls_before:
            raise OSError("eyJsecret cannot be read")
        return b"first"

    async with ScriptedServer(challenging) as server:
        credentials = Credentials("token", source)
        if not calls_before:
            with pytest.raises(CredentialsFailed, match="no credentials to connect with: OSError") as failed:
                await open_to(server, credentials=credentials)
            assert "eyJ" not in str(failed.value)
            assert not server.peers
            return
        connection = await open_to(server, credentials=credentials)
        with pytest.raises(ConnectionLost, match="no credentials to connect with: OSError"):
            await partitions(connection)
        assert not connection.is_open
        await connection.close()


async def test_a_connection_that_closes_asks_for_no_credentials_any_more() -> None:
    asked: list[Awaitable[bytes]] = []
    cancelled: list[bool] = []

    async def source() -> bytes:
        if not asked:
            asked.append(asyncio.sleep(0, b""))
            return await asked[0]
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        return b""

    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.send(challenge())

    async with ScriptedServer(script) as server:
        connection = await open_to(server, credentials=Credentials("token", source))
        waiting = asyncio.create_task(partitions(connection))
        await eventually(lambda: connection._challenge is not None)
        await eventually(lambda: connection.pending == 1)
        await connection.close()
        with pytest.raises(ConnectionLost):
            await waiting
        await eventually(lambda: connection._challenge is None)


def test_data_are_not_shown() -> None:
    assert "secret" not in repr(Credentials("basic", b"alice:secret".__str__))  # type: ignore[arg-type]
    assert "secret" not in repr(OriginalPrincipal("alice", Credentials("token", lambda: b"secret")))
