"""Connections to the service URL, and to the brokers that a redirect names."""

from __future__ import annotations

import pytest

from broker_core.access.asker import Asker
from broker_core.client import ConnectionLost, InvalidServiceUrl, LookupClient
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import UpstreamConnections, UpstreamOptions
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.scripted_server import Peer, Script, ScriptedServer

ASKER = Asker()


def partitions(number: int) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, number))

    return script


async def ask(client: LookupClient) -> int:
    return await client.partitioned_metadata("persistent://t/n/x", timeout=10)


def connections_to(url: str) -> UpstreamConnections:
    options = UpstreamOptions(
        UpstreamSettings(service_url=url), first_backoff=0.005, longest_backoff=0.02, connection_wait=0.5
    )
    return UpstreamConnections(options, size=1, busy=10, max_frame=None, on_connected=lambda _server: None)


async def test_a_redirect_is_asked_of_the_broker_that_it_names() -> None:
    async with ScriptedServer(partitions(1)) as service, ScriptedServer(partitions(2)) as broker:
        connections = connections_to(service.url)
        await connections.start(5)
        try:
            assert await connections.use(ASKER, ask) == 1
            assert await connections.use(ASKER, ask, address=broker.url) == 2
            assert await connections.use(ASKER, ask, address=broker.url) == 2
            assert (len(service.peers), len(broker.peers)) == (1, 1)
            with pytest.raises(InvalidServiceUrl):
                await connections.use(ASKER, ask, address="broker-3")
        finally:
            await connections.stop()
        with pytest.raises(ConnectionLost):
            await connections.use(ASKER, ask, address=broker.url)
