"""What a client asks again, at which address, and which errors it raises at once."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.client import (
    HandshakeRefused,
    LookupClient,
    OperationTimeout,
    ServerRefused,
    Token,
    UnexpectedAnswer,
)
from broker_core.errors import ServerError
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.client.scripted_listings import TOPIC, answer, ended, listing_of, questions
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.mark.parametrize("code", [ServerError.ServiceNotReady, ServerError.TooManyRequests])
async def test_what_passes_is_asked_again(code: ServerError) -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        if len(questions(server)) < 4:
            peer.send(commands.error(command.getTopicsOfNamespace.request_id, code, "later"))
        else:
            peer.send(answer(command, [TOPIC]))

    async with ScriptedServer(script) as server, LookupClient(server.url) as client:
        assert await client.get_topics_under_namespace("t/n") == [TOPIC]
        assert len(questions(server)) == 4
        assert len(server.peers) == 1


async def test_what_does_not_pass_in_time_is_an_error_that_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(
            commands.error(command.getTopicsOfNamespace.request_id, ServerError.TooManyRequests, "no room")
        )

    async with ScriptedServer(script) as server, LookupClient(server.url) as client:
        asked = asyncio.create_task(client.get_topics_under_namespace("t/n", timeout=AGES))
        await eventually(lambda: len(questions(server)) > 1)
        time_passes(monkeypatch, AGES + 1)
        with pytest.raises(OperationTimeout, match=r"within 3600 s: TooManyRequests: no room"):
            await asked
        await eventually(lambda: not client._reasons)
    async with LookupClient(f"pulsar://127.0.0.1:{free_port()}", operation_timeout=AGES) as client:
        looking = asyncio.create_task(client.lookup(TOPIC))
        await eventually(lambda: "cannot connect" in str(client._service.problem))
        time_passes(monkeypatch, AGES + 1)
        with pytest.raises(OperationTimeout, match=r"within 3600 s: cannot connect to 127"):
            await looking


@pytest.mark.parametrize(
    "code", [ServerError.AuthorizationError, ServerError.MetadataError, ServerError.NotAllowedError]
)
async def test_other_refusals_are_raised_at_once(code: ServerError) -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(commands.error(command.getTopicsOfNamespace.request_id, code, "no"))

    async with ScriptedServer(script) as server, LookupClient(server.url) as client:
        asked = [asyncio.create_task(client.get_topics_under_namespace("t/n")) for _ in range(3)]
        await ended(asked)
        failures = [each.exception() for each in asked]
        assert all(isinstance(each, ServerRefused) and each.code is code for each in failures)
        assert len({id(each) for each in failures}) == 3, "each with a traceback of its own"
        assert len(questions(server)) == 1


async def test_a_refused_identity_is_raised_at_once() -> None:
    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.send(commands.error(commands.CONNECTION_REQUEST_ID, ServerError.AuthenticationError, "who"))

    async with (
        ScriptedServer(script, handshake=False) as server,
        LookupClient(server.url, auth=Token("a.b.c")) as client,
    ):
        with pytest.raises(HandshakeRefused, match="who") as refused:
            await client.get_topics_under_namespace("t/n")
        assert "a.b.c" not in repr(refused.value) + repr(client)


async def test_a_server_that_speaks_something_else_is_an_error_at_once() -> None:
    async def garbage(peer: Peer, _command: BaseCommand) -> None:
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with (
        ScriptedServer(garbage, handshake=False) as server,
        LookupClient(server.url, operation_timeout=AGES) as client,
    ):
        with pytest.raises(UnexpectedAnswer, match="speaks HTTP: its URL is http:"):
            await client.get_topics_under_namespace("t/n")


async def test_a_lost_connection_is_replaced_and_the_question_asked_again() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        if len(questions(server)) < 6:
            peer.abort()
        else:
            peer.send(answer(command, [TOPIC]))

    async with ScriptedServer(script) as server, LookupClient(server.url) as client:
        assert await client.get_topics_under_namespace("t/n") == [TOPIC]
        assert len(server.peers) == 6


async def test_the_server_may_come_later_and_go_and_come_back() -> None:
    port = free_port()
    async with LookupClient(f"pulsar://127.0.0.1:{port}") as client:
        for name in (TOPIC, f"{TOPIC}y"):
            asked = asyncio.create_task(client.get_topics_under_namespace("t/n"))
            await eventually(lambda: client._service.problem not in (None, "not connected yet"))
            server = ScriptedServer(listing_of([name]))
            await server.start(port)
            assert await asked == [name]
            await server.stop()
            await eventually(lambda: client._service.problem is not None)


async def test_a_server_that_asks_for_new_credentials_gets_them() -> None:
    tokens = iter(["first.b.c", "second.b.c"])

    async def script(peer: Peer, command: BaseCommand) -> None:
        if command.type == BaseCommand.GET_TOPICS_OF_NAMESPACE:
            peer.send(commands.auth_challenge("Scripted1", "token", commands.REFRESH, protocol_version=21))
        elif command.type == BaseCommand.AUTH_RESPONSE:
            peer.send(answer(peer.received[-2], [TOPIC]))

    async with (
        ScriptedServer(script) as server,
        LookupClient(server.url, auth=Token(lambda: next(tokens))) as client,
    ):
        assert await client.get_topics_under_namespace("t/n") == [TOPIC]
        connect, _question, response = server.received
        assert (connect.connect.auth_method_name, connect.connect.auth_data) == ("token", b"first.b.c")
        assert response.authResponse.response.auth_data == b"second.b.c"
        assert len(server.peers) == 1
