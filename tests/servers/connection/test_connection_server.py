"""What the servers of Pulsar's and Kafka's clients share: limits that change, and the end."""

from __future__ import annotations

import asyncio

from broker_core.access import Peer
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.servers.admission import ConnectionPlace
from broker_core.servers.connection import ClientConnection, ConnectionServer
from broker_core.settings import LimitsSettings, PulsarSettings
from tests.servers.connection.test_client_connection import LineHandler
from tests.support.eventually import eventually


class LineServer(ConnectionServer):
    """Serves lines of text."""

    def __init__(self) -> None:
        super().__init__(
            "lines",
            PulsarSettings(),
            Permits(),
            Metrics(),
            LimitsSettings(),
            connections=None,
            haproxy_from=(),
            file_ceiling=None,
        )

    async def start(self) -> tuple[str, int]:
        return await self._arrivals.listen("127.0.0.1", 0, self._line)

    def _line(self, peer: Peer, place: ConnectionPlace) -> ClientConnection:
        return self._connected(LineHandler, place, peer.remote_address)


async def test_limits_are_replaced_and_connected_clients_stay_until_the_end() -> None:
    server = LineServer()
    address = await server.start()
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"hello\n")
    assert await reader.readline() == b"hello\n"
    server.limit(LimitsSettings(concurrent_lookups=7), 1)
    assert server.load.slots.limit == 7
    other, refused = await asyncio.open_connection(*address)
    assert await other.read() == b""
    assert server.connections == 1
    await server.stop(0)
    assert await reader.read() == b""
    assert server.connections == 0
    await server.stop(0)  # once more is no error
    for each in (writer, refused):
        each.close()
    await eventually(lambda: not server.load.request_tasks)
