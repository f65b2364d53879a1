"""Clients over TLS: listings of all sizes, slow readers, common names, refusals."""

from __future__ import annotations

import ssl
from typing import Any

from broker_core.servers.arrival import ServerCertificate
from broker_core.wire.pulsar import commands
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_serving import serving
from tests.support.raw_client import RawClient

NAMES = [f"persistent://t/n/{'x' * 60}-{number:05d}" for number in range(60_000)]
ALL = "Pulsar-CPP-v3.5.1"
SMALL = 32 * 1024


async def test_a_client_is_answered_over_tls(
    certificate: ServerCertificate, trusting: ssl.SSLContext
) -> None:
    async with serving(MemoryLister(NAMES), tls=certificate) as s:
        client = await s.tls_client(trusting, client_version=ALL)
        assert len((await client.ask("t/n")).topics) == 60_000
        assert len((await client.ask("t/n", pattern="t/n/x+-0000.")).topics) == 10
        await client.ping()
        assert s.server.connections == 1
        client.close()
        await eventually(lambda: s.server.connections == 0)
        assert s.sample("tls_handshakes_total", listener="pulsar", outcome="done") == 1


async def test_slow_readers_hold_no_more_than_their_permits(
    certificate: ServerCertificate, trusting: ssl.SSLContext
) -> None:
    async with serving(MemoryLister(NAMES), tls=certificate, send_buffer=SMALL) as s:
        readers = [await s.tls_client(trusting, client_version=ALL, receive_buffer=SMALL) for _ in range(20)]
        for reader in readers:
            await reader.send(commands.get_topics(1, "t/n"))
        await eventually(lambda: s.permits.direct.acquired > 0)
        async with await s.client(client_version=ALL) as other:
            assert len((await other.ask("t/n")).topics) == 60_000
        connections: set[Any] = {*s.server.load.connections}
        waiting = sum(each._transport.get_write_buffer_size() for each in connections)
        assert 0 < waiting <= s.permits.direct.acquired
        for reader in readers:
            assert len(RawClient.answer(await reader.receive(), 1).topics) == 60_000
            await reader.ping()
