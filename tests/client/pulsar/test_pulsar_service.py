"""A lookup service over Pulsar's protocol, and the brokers that redirects name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker_core.client import ConnectionLost, ServerRefused, UnexpectedAnswer
from broker_core.client.pulsar import pulsar_service
from broker_core.client.pulsar.pulsar_service import PulsarService
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.scripted_server import Peer, ScriptedServer

TOPIC = "persistent://t/n/x"


@asynccontextmanager
async def service_at(url: str) -> AsyncIterator[PulsarService]:
    service = PulsarService(
        url,
        client_version=None,
        credentials=None,
        tls=None,
        connect_timeout=AGES,
        keep_alive=30,
        max_answer=1 << 30,
    )
    try:
        yield service
    finally:
        await service.close()


def look_up_by(answers: Callable[[ScriptedServer], dict[str, Any]], servers: list[ScriptedServer]) -> None:
    for server in servers:

        async def script(peer: Peer, command: BaseCommand, server: ScriptedServer = server) -> None:
            found = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
            body = found.lookupTopicResponse
            body.request_id = command.lookupTopic.request_id
            for name, value in answers(server).items():
                setattr(body, name, value)
            peer.send(commands.encode(found))

        server.script = script


async def test_redirects_are_followed() -> None:
    async with ScriptedServer() as service, ScriptedServer() as broker, service_at(service.url) as client:
        look_up_by(
            lambda server: (
                {"response": 0, "brokerServiceUrl": broker.url, "authoritative": True}
                if server is service
                else {"response": 1, "brokerServiceUrl": "pulsar://owner:6650", "authoritative": True}
            ),
            [service, broker],
        )
        found = await client.broker(TOPIC, listener_name="outside")
        assert (found.url, found.redirect) == ("pulsar://owner:6650", False)
        (asked,) = [each.lookupTopic for each in broker.received if each.HasField("lookupTopic")]
        assert (asked.topic, asked.authoritative, asked.advertised_listener_name) == (TOPIC, True, "outside")
        await client.broker(TOPIC, listener_name=None)
        assert len(broker.peers) == 1, "its connection is kept"


async def test_redirects_that_lead_nowhere_are_errors() -> None:
    async with ScriptedServer() as service, service_at(service.url) as client:
        look_up_by(lambda server: {"response": 0, "brokerServiceUrl": server.url}, [service])
        with pytest.raises(UnexpectedAnswer, match="redirect in a circle"):
            await client.broker(TOPIC, listener_name=None)
        look_up_by(lambda _server: {"response": 2, "error": 4, "message": "no"}, [service])
        with pytest.raises(ServerRefused, match="AuthorizationError: no"):
            await client.broker(TOPIC, listener_name=None)


async def test_the_brokers_of_redirects_have_so_many_connections_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pulsar_service, "_MOST_BROKERS", 1)
    async with (
        ScriptedServer() as service,
        ScriptedServer() as one,
        ScriptedServer() as other,
        service_at(service.url) as client,
    ):
        for broker in (one, other, one):
            look_up_by(
                lambda server, broker=broker: (  # type: ignore[misc]
                    {"response": 0, "brokerServiceUrl": broker.url}
                    if server is service
                    else {"response": 1, "brokerServiceUrl": server.url}
                ),
                [service, one, other],
            )
            assert (await client.broker(TOPIC, listener_name=None)).url == broker.url
        assert (len(service.peers), len(one.peers), len(other.peers)) == (1, 2, 1)
        await eventually(other.peers[0].reader.at_eof)
        assert list(client._brokers) == [one.url]


async def test_a_closed_service_connects_to_no_broker() -> None:
    async with ScriptedServer() as broker, service_at(broker.url) as client:
        await client.close()
        with pytest.raises(ConnectionLost, match="is closed"):
            await client._use(broker.url, lambda session: session.partitioned_metadata(TOPIC))
        assert not broker.peers
