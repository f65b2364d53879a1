"""One connection: handshake, concurrent requests, keep-alive, large answers, misbehaving servers."""

from __future__ import annotations

import asyncio
import struct

import pytest

from broker_core.client import Credentials
from broker_core.client.client_errors import (
    ConnectionLost,
    CredentialsFailed,
    HandshakeRefused,
    OperationTimeout,
    ServerRefused,
    UnexpectedAnswer,
)
from broker_core.client.pulsar.lookup_connection import LookupConnection
from broker_core.client.pulsar.topics_answer import TopicsAnswer
from broker_core.errors import ServerError, TooManyRequests
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer, answer_nothing
from tests.support.topics_answers import get_topics_response

PARTITIONS = BaseCommand.PARTITIONED_METADATA_RESPONSE
LISTING = BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
TOPIC = "persistent://t/n/x"


async def open_to(server: ScriptedServer, **options: object) -> LookupConnection:
    return await LookupConnection.open(("127.0.0.1", server.port), client_version="Test-1", **options)  # type: ignore[arg-type]


def ask_partitions(request_id: int) -> bytes:
    return commands.partitioned_metadata(request_id, TOPIC)


def ask_topics(request_id: int) -> bytes:
    return commands.get_topics(request_id, "t/n")


async def partitions(connection: LookupConnection, timeout: float = AGES) -> int:
    answer = await connection.request(ask_partitions, PARTITIONS, timeout=timeout)
    assert isinstance(answer, BaseCommand)
    return answer.partitionMetadataResponse.partitions


async def test_the_handshake_says_who_asks_and_learns_who_answers() -> None:
    async with ScriptedServer(topic_watchers=True) as server:
        connection = await open_to(server)
        assert connection.server.server_version == "Scripted1"
        assert connection.server.feature_flags.supports_topic_watchers
        connect = server.received[0].connect
        assert (connect.client_version, connect.protocol_version) == ("Test-1", 21)
        assert (connect.auth_method_name, connect.HasField("auth_data")) == ("none", False)
        assert connection.is_open
        await connection.close()
        assert not connection.is_open


async def test_answers_find_their_requests_in_any_order() -> None:
    waiting: list[int] = []

    async def script(peer: Peer, command: BaseCommand) -> None:
        waiting.append(command.partitionMetadata.request_id)
        if len(waiting) == 5:
            for request_id in reversed(waiting):
                peer.send(commands.partitioned_metadata_response(request_id, request_id * 10))

    async with ScriptedServer(script) as server:
        connection = await open_to(server)
        answers = await asyncio.gather(*(partitions(connection) for _ in range(5)))
        assert answers == [0, 10, 20, 30, 40]
        assert connection.pending == 0
        await connection.close()


async def test_an_error_fails_its_request_alone() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        request_id = command.partitionMetadata.request_id
        if request_id == 0:
            peer.send(commands.error(999, ServerError.MetadataError, "of nobody"))
            peer.send(commands.error(0, ServerError.AuthorizationError, "not you"))
        else:
            peer.send(commands.partitioned_metadata_response(request_id, 3))

    async with ScriptedServer(script) as server:
        connection = await open_to(server)
        with pytest.raises(ServerRefused, match="AuthorizationError: not you") as refused:
            await partitions(connection)
        assert refused.value.code is ServerError.AuthorizationError
        assert await partitions(connection) == 3
        await connection.close()


async def test_what_answers_nothing_that_was_asked_is_let_by() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(commands.partitioned_metadata_response(12345, 9))
        peer.send(commands.encode(BaseCommand(type=99)))  # type: ignore[arg-type]
        peer.send(get_topics_response(777, [TOPIC], topics_hash=None, filtered=False))
        peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, 1))
        peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, 2))

    async with ScriptedServer(script) as server:
        connection = await open_to(server)
        assert await partitions(connection) == 1
        assert await partitions(connection) == 1
        await connection.close()


async def test_an_answer_of_another_type_is_no_answer() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(commands.success(command.partitionMetadata.request_id))

    async with ScriptedServer(script) as server:
        connection = await open_to(server)
        with pytest.raises(UnexpectedAnswer, match="SUCCESS in place of PARTITIONED_METADATA_RESPONSE"):
            await partitions(connection)
        await connection.close()


async def test_a_late_answer_belongs_to_nobody() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        request_id = command.partitionMetadata.request_id
        if request_id == 1:
            peer.send(commands.partitioned_metadata_response(0, 100))
            peer.send(commands.partitioned_metadata_response(1, 101))

    async with ScriptedServer(script) as server:
        connection = await open_to(server)
        with pytest.raises(OperationTimeout, match=r"did not answer within 0\.05 s"):
            await partitions(connection, timeout=0.05)
        assert await partitions(connection) == 101
        await connection.close()


async def test_a_broken_connection_fails_what_was_asked_and_what_is_asked_then() -> None:
    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.abort()

    async with ScriptedServer(script) as server:
        connection = await open_to(server)
        with pytest.raises(ConnectionLost, match=r"lost the connection to 127\.0\.0\.1"):
            await partitions(connection)
        assert not connection.is_open
        with pytest.raises(ConnectionLost, match=r"lost the connection to 127\.0\.0\.1"):
            await partitions(connection)
        await connection.close()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "over the limit"),
        (struct.pack(">II", 5, 1) + b"\xff", "unparsable"),
        (commands.connected("Again", protocol_version=1, max_message_size=None), None),
        (struct.pack(">II", 10, 6) + b"\x08\x21\x8a\x02\x01\x00", "impossible key 0"),
    ],
)
async def test_a_server_that_breaks_the_protocol(sent: bytes, reason: str | None) -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(sent)
        if reason is None:
            peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, 4))

    async with ScriptedServer(script) as server:
        connection = await open_to(server, max_frame=1 << 20)
        if reason is None:
            assert await partitions(connection) == 4
        else:
            with pytest.raises(ConnectionLost, match=reason):
                await partitions(connection)
        await connection.close()


async def test_ping_is_answered() -> None:
    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.send(commands.ping())

    async with ScriptedServer(script) as server:
        connection = await open_to(server)
        with pytest.raises(OperationTimeout):
            await partitions(connection, timeout=0.01)
        await eventually(lambda: any(each.type == BaseCommand.PONG for each in server.received))
        await connection.close()


async def pinged(monkeypatch: pytest.MonkeyPatch, server: ScriptedServer, times: int) -> None:
    """Let the time of a keep-alive of AGES pass, and wait for the PING of so many."""
    time_passes(monkeypatch, 1.5 * AGES)
    await eventually(lambda: sum(each.type == BaseCommand.PING for each in server.received) == times)


async def test_keep_alive_pings_and_finds_a_silent_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer() as server:
        connection = await open_to(server, keep_alive=AGES)
        for times in range(1, 4):
            await pinged(monkeypatch, server, times)
            await eventually(lambda: connection._has_received, what="the PONG")
        server.keep_alive = False
        asked = asyncio.create_task(partitions(connection, timeout=9 * AGES))
        await pinged(monkeypatch, server, 4)
        assert connection.is_open
        time_passes(monkeypatch, 1.5 * AGES)
        with pytest.raises(ConnectionLost, match="is silent"):
            await asked
        await connection.close()


async def test_a_refused_handshake() -> None:
    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.send(
            commands.error(
                commands.CONNECTION_REQUEST_ID, ServerError.AuthenticationError, "Failed to authenticate"
            )
        )

    async with ScriptedServer(script, handshake=False) as server:
        with pytest.raises(HandshakeRefused, match="AuthenticationError: Failed to authenticate"):
            await open_to(server)


async def test_a_handshake_that_is_none() -> None:
    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.send(commands.success(1))

    async with ScriptedServer(script, handshake=False) as server:
        with pytest.raises(UnexpectedAnswer, match="SUCCESS in place of CONNECTED"):
            await open_to(server)


async def test_a_handshake_that_never_ends() -> None:
    async with ScriptedServer(answer_nothing, handshake=False) as server:
        with pytest.raises(ConnectionLost, match=r"did not answer within 0\.05 s"):
            await open_to(server, connect_timeout=0.05)


async def test_credentials_that_do_not_come_are_no_fault_of_the_server() -> None:
    async def never() -> bytes:
        await asyncio.Event().wait()
        return b""

    async with ScriptedServer() as server:
        with pytest.raises(CredentialsFailed, match=r"credentials .* were not there within 0\.05 s"):
            await open_to(server, connect_timeout=0.05, credentials=Credentials("token", never))
        assert not server.peers


async def test_nobody_there() -> None:
    with pytest.raises(ConnectionLost, match=r"cannot connect to 127\.0\.0\.1"):
        await LookupConnection.open(("127.0.0.1", free_port()), client_version="Test-1")


async def test_closing_fails_what_is_asked() -> None:
    async with ScriptedServer() as server:
        connection = await open_to(server)
        asking = asyncio.create_task(partitions(connection))
        await eventually(lambda: connection.pending == 1)
        await connection.close()
        with pytest.raises(ConnectionLost, match="was closed"):
            await asking


# ---- large answers --------------------------------------------------------------------------------------------------

NAMES = [f"persistent://t/n/topic-{index:06d}" for index in range(40_000)]


async def send_large(peer: Peer, command: BaseCommand) -> None:
    request_id = commands.request_id_of(command)
    assert request_id is not None
    if command.type == BaseCommand.GET_TOPICS_OF_NAMESPACE:
        peer.send(get_topics_response(request_id, NAMES, topics_hash="00000000", filtered=False))
    else:
        peer.send(commands.partitioned_metadata_response(request_id, 1))


async def test_a_large_answer_waits_until_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    room = asyncio.Event()

    async def admit(size: int) -> None:
        asked.append(size)
        await room.wait()

    async with ScriptedServer(send_large) as server:
        connection = await open_to(server, keep_alive=AGES)
        ages = 100 * AGES
        listing = asyncio.create_task(connection.request(ask_topics, LISTING, timeout=ages, admit=admit))
        await eventually(lambda: asked)
        behind = asyncio.create_task(partitions(connection, timeout=ages))
        for times in range(1, 6):
            await pinged(monkeypatch, server, times)
        assert not listing.done()
        assert not behind.done()
        room.set()
        answer = await listing
        assert isinstance(answer, memoryview)
        assert asked == [len(answer) + 8]
        assert TopicsAnswer(answer).topics == NAMES
        assert await behind == 1
        small = await connection.request(ask_topics, LISTING, timeout=AGES)
        assert isinstance(small, memoryview)
        await connection.close()


async def test_without_room_the_answer_and_its_connection_are_given_up() -> None:
    async def admit(_size: int) -> None:
        raise TooManyRequests("Failed due to heap memory limit exceeded", reason="heap_timeout")

    async with ScriptedServer(send_large) as server:
        connection = await open_to(server)
        with pytest.raises(TooManyRequests):
            await connection.request(ask_topics, LISTING, timeout=AGES, admit=admit)
        assert not connection.is_open
        await connection.close()


async def test_who_gives_up_while_waiting_for_room_frees_it() -> None:
    asked = asyncio.Event()
    cancelled = asyncio.Event()

    async def admit(_size: int) -> None:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    async with ScriptedServer(send_large) as server:
        connection = await open_to(server)
        listing = asyncio.create_task(connection.request(ask_topics, LISTING, timeout=AGES, admit=admit))
        await asked.wait()
        listing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listing
        await cancelled.wait()
        assert not connection.is_open
        await connection.close()


async def send_half(peer: Peer, command: BaseCommand) -> None:
    if command.type != BaseCommand.GET_TOPICS_OF_NAMESPACE:
        return  # it waits behind the half
    request_id = commands.request_id_of(command)
    assert request_id is not None
    frame = get_topics_response(request_id, NAMES, topics_hash="00000000", filtered=False)
    peer.send(frame[: len(frame) // 2])


@pytest.mark.parametrize("how", ["time-out", "cancelled"])
async def test_an_answer_that_stops_half_way_ends_the_connection_with_its_request(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedServer(send_half) as server:
        connection = await open_to(server, keep_alive=AGES)
        timeout = 60 if how == "time-out" else AGES
        listing = asyncio.create_task(connection.request(ask_topics, LISTING, timeout=timeout))
        behind = asyncio.create_task(partitions(connection, timeout=AGES))
        await eventually(lambda: connection._frames.buffered)
        if how == "time-out":
            time_passes(monkeypatch, 61)
        else:
            # As if the last byte were long ago; it may still be on its way.
            monkeypatch.setattr("broker_core.client.pulsar.lookup_connection._STALLED", -1.0)
            listing.cancel()
        with pytest.raises((OperationTimeout, asyncio.CancelledError)):
            await listing
        assert not connection.is_open
        with pytest.raises(ConnectionLost, match="did not finish an answer"):
            await behind
        await connection.close()


async def test_who_goes_while_an_answer_comes_leaves_the_connection_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "broker_core.client.pulsar.lookup_connection._STALLED", AGES
    )  # however slow this machine is
    rest = asyncio.Event()

    async def script(peer: Peer, command: BaseCommand) -> None:
        if command.type == BaseCommand.PARTITIONED_METADATA:
            await send_large(peer, command)
            return
        frame = get_topics_response(0, NAMES, topics_hash="00000000", filtered=False)
        peer.send(frame[:1000])
        await rest.wait()
        peer.send(frame[1000:])

    async with ScriptedServer(script) as server:
        connection = await open_to(server, keep_alive=AGES)
        listing = asyncio.create_task(connection.request(ask_topics, LISTING, timeout=AGES))
        await eventually(lambda: connection._frames.buffered)
        listing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listing
        assert connection.is_open
        rest.set()
        assert await partitions(connection, timeout=AGES) == 1
        await connection.close()


async def test_a_server_that_reads_nothing_is_dead_at_some_point() -> None:
    reading = asyncio.Event()

    async def script(_peer: Peer, _command: BaseCommand) -> None:
        await reading.wait()

    async with ScriptedServer(script) as server:
        connection = await open_to(server)
        pattern = "x" * 1_000_000

        def ask(request_id: int) -> bytes:
            return commands.get_topics(request_id, "t/n", topics_pattern=pattern)

        with pytest.raises(ConnectionLost, match="does not read what it is sent"):
            await asyncio.gather(*(connection.request(ask, LISTING, timeout=AGES) for _ in range(30)))
        reading.set()
        await connection.close()
