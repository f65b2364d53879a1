"""Connections to a cluster that starts, stops and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from broker_core.client import ConnectionLost, LookupClient
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar.connection_pool import ConnectionPool
from broker_core.upstream.pulsar.options import UpstreamOptions
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, CommandConnected
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer

TOPIC = "persistent://t/n/x"


async def three_partitions(peer: Peer, command: BaseCommand) -> None:
    peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, 3))


async def ask(client: LookupClient) -> int:
    return await client.partitioned_metadata(TOPIC, timeout=10)


def ignore(_server: CommandConnected) -> None:
    pass


@asynccontextmanager
async def pool_to(
    port: int,
    *,
    size: int = 1,
    busy: int = 100,
    on_connected: Callable[[CommandConnected], None] = ignore,
    connection_wait: float = 5.0,
) -> AsyncIterator[ConnectionPool]:
    options = UpstreamOptions(
        UpstreamSettings(service_url=f"pulsar://127.0.0.1:{port}"),
        connection_wait=connection_wait,
        first_backoff=0.005,
        longest_backoff=0.02,
    )
    pool = ConnectionPool(
        options, options.upstream.service_url, size=size, busy=busy, max_frame=None, on_connected=on_connected
    )
    try:
        yield pool
    finally:
        await pool.stop()


async def test_a_connection_is_opened_when_it_is_needed_and_kept() -> None:
    async with ScriptedServer(three_partitions) as server, pool_to(server.port) as pool:
        assert not pool._open
        assert await asyncio.gather(*(pool.use(ask) for _ in range(10))) == [3] * 10
        assert pool._open
        assert len(server.peers) == 1


async def test_it_is_told_what_the_server_says() -> None:
    told: list[CommandConnected] = []
    async with (
        ScriptedServer(topic_watchers=True) as server,
        pool_to(server.port, on_connected=told.append) as pool,
    ):
        pool.start()
        await pool.attempted(5)
        assert [each.feature_flags.supports_topic_watchers for each in told] == [True]


async def test_more_connections_while_all_are_busy_and_no_more_than_size() -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer, command: BaseCommand) -> None:
        await go_on.wait()
        await three_partitions(peer, command)

    async with ScriptedServer(script) as server, pool_to(server.port, size=3, busy=1) as pool:
        asked: list[asyncio.Task[int]] = []
        while len(pool._open) < 3:
            asked.append(asyncio.create_task(pool.use(ask)))
            await eventually(lambda: sum(client.pending for client in pool._open) == len(asked))
            await eventually(lambda: pool._connecting is None)
        assert len(asked) == 4, "the third and the fourth were asked while all were busy"
        asked += [asyncio.create_task(pool.use(ask)) for _ in range(10)]
        await eventually(lambda: sum(client.pending for client in pool._open) == len(asked))
        go_on.set()
        assert await asyncio.gather(*asked) == [3] * 14
        assert len(server.peers) == 3


def _questions(server: ScriptedServer) -> list[BaseCommand]:
    return [command for command in server.received if command.type == BaseCommand.PARTITIONED_METADATA]


async def test_a_dead_connection_fails_nobody_else_and_is_replaced() -> None:
    broken: list[Peer] = []

    async def script(peer: Peer, command: BaseCommand) -> None:
        if not broken:
            broken.append(peer)
            peer.abort()
        else:
            await three_partitions(peer, command)

    async with ScriptedServer(script) as server, pool_to(server.port) as pool:
        assert await pool.use(ask) == 3, "asked again over another connection"
        assert len(server.peers) == 2
        assert await pool.use(ask) == 3
        assert len(server.peers) == 2


async def test_a_request_that_breaks_every_connection_is_asked_twice_only() -> None:
    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.abort()

    async with ScriptedServer(script) as server, pool_to(server.port) as pool:
        with pytest.raises(ConnectionLost, match="lost the connection"):
            await pool.use(ask)
        assert len(_questions(server)) == 2


async def test_the_cluster_may_be_down_at_first() -> None:
    server = ScriptedServer(three_partitions)
    async with pool_to(port := free_port()) as pool:
        pool.start()
        await pool.attempted(5)
        assert not pool._open
        waiting = asyncio.create_task(pool.use(ask))
        await server.start(port)
        try:
            assert await waiting == 3
        finally:
            await server.stop()


async def test_the_cluster_may_go_and_come_back() -> None:
    server = ScriptedServer(three_partitions)
    await server.start()
    port = server.port
    async with pool_to(port, connection_wait=0.1) as pool:
        assert await pool.use(ask) == 3
        await server.stop()
        await eventually(lambda: not pool._open)
        with pytest.raises(
            ConnectionLost, match=r"no connection to pulsar://127\.0\.0\.1:\d+: cannot connect"
        ):
            await pool.use(ask)
        again = ScriptedServer(three_partitions)
        await again.start(port)
        try:
            await eventually(lambda: pool._open)
            assert await pool.use(ask) == 3
        finally:
            await again.stop()


async def test_nothing_after_the_end() -> None:
    async with ScriptedServer() as server, pool_to(server.port) as pool:
        asking = asyncio.create_task(pool.use(ask))
        await eventually(lambda: _questions(server))
        await pool.stop()
        with pytest.raises(ConnectionLost):
            await asking
        with pytest.raises(ConnectionLost):
            await pool.use(ask)
        assert not pool._open
        assert len(server.peers) == 1


async def test_a_handshake_that_never_ends_does_not_hold_anybody_long() -> None:
    async with (
        ScriptedServer(handshake=False) as server,
        pool_to(server.port, connection_wait=0.05) as pool,
    ):
        with pytest.raises(ConnectionLost, match="not connected yet"):
            await pool.use(ask)
        await pool.attempted(0.01)
