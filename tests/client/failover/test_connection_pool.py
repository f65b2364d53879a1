"""Connections to a cluster that starts, stops and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from broker_core.client import ConnectionLost, HandshakeRefused, LookupSession
from broker_core.client.failover.address_health import AddressHealth
from broker_core.client.failover.connection_places import ConnectionPlaces
from broker_core.client.failover.connection_pool import ConnectionPool, PoolOptions
from broker_core.errors import ServerError
from broker_core.service_addresses import Address, shown_address
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer

TOPIC = "persistent://t/n/x"


async def three_partitions(peer: Peer, command: BaseCommand) -> None:
    peer.send(commands.partitioned_metadata_response(command.partitionMetadata.request_id, 3))


async def ask(client: LookupSession) -> int:
    return await client.partitioned_metadata(TOPIC, timeout=AGES)


@asynccontextmanager
async def pool_to(
    *ports: int,
    size: int = 1,
    busy: int = 100,
    connection_wait: float = 5.0,
    limit: int = 100,
    connect_timeout: float = 4.0,
    keep_alive: float = 4.0,
    **options: Any,
) -> AsyncIterator[ConnectionPool[LookupSession]]:
    addresses = [("127.0.0.1", port) for port in ports]
    given = PoolOptions(
        **{
            "connection_wait": connection_wait,
            "patience": 1.0,
            "first_backoff": 0.005,
            "longest_backoff": 0.02,
            **options,
        }
    )
    health = AddressHealth(addresses, first_backoff=0.005, longest_backoff=0.02)
    places = ConnectionPlaces(limit)

    async def connect(address: Address, on_lost: Callable[[], None]) -> LookupSession:
        session = LookupSession(
            f"pulsar://{shown_address(address)}",
            connect_timeout=connect_timeout,
            keep_alive=keep_alive,
            on_lost=on_lost,
        )
        await session.connect()
        return session

    pool = ConnectionPool(given, health, places, connect, shown="the brokers", size=size, busy=busy)
    try:
        yield pool
    finally:
        await pool.stop()
        assert places.taken == 0
        assert places.waiting == 0


async def test_a_connection_is_opened_when_it_is_needed_and_kept() -> None:
    async with ScriptedServer(three_partitions) as server, pool_to(server.port) as pool:
        assert not pool._open
        assert await asyncio.gather(*(pool.use(ask) for _ in range(10))) == [3] * 10
        assert pool._open
        assert len(server.peers) == 1


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
        waiting = asyncio.create_task(pool.use(ask))
        await eventually(lambda: pool._health.problem != "not connected yet")
        await server.start(port)
        try:
            assert await waiting == 3
        finally:
            await server.stop()


async def test_the_cluster_may_go_and_come_back() -> None:
    server = ScriptedServer(three_partitions)
    await server.start(port := free_port())  # nobody else is given it while it is away
    async with pool_to(port) as pool:
        assert await pool.use(ask) == 3
        pool._options = replace(pool._options, connection_wait=0.1)
        await server.stop()
        await eventually(lambda: not pool._open)
        with pytest.raises(
            ConnectionLost, match=r"no connection to the brokers: (cannot connect|the connection was lost)"
        ):
            await pool.use(ask)
        again = ScriptedServer(three_partitions)
        await again.start(port)
        try:

            async def asked() -> bool:
                try:
                    return await pool.use(ask) == 3
                except ConnectionLost:
                    return False

            assert await eventually(asked)
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


async def test_nobody_connects_for_nobody() -> None:
    """Attempts end with the last request that waits for them."""
    async with pool_to(free_port(), connection_wait=AGES) as pool:
        asking = asyncio.create_task(pool.use(ask))
        await eventually(lambda: "cannot connect" in str(pool.problem))
        asking.cancel()
        await eventually(lambda: pool._connecting is None)
        assert pool.is_idle


async def test_another_broker_answers_where_one_is_half_open() -> None:
    async with (
        ScriptedServer(handshake=False) as silent,
        ScriptedServer(three_partitions) as server,
        pool_to(silent.port, server.port, patience=0.05, connect_timeout=AGES, connection_wait=AGES) as pool,
    ):
        for _ in range(4):  # whichever address is the first one
            assert await pool.use(ask) == 3
            for client in list(pool._open):
                client.abort()
        await eventually(lambda: all(peer.reader.at_eof() for peer in silent.peers))
        assert not pool._attempts


async def test_another_broker_answers_where_one_is_gone_or_talks_garbage() -> None:
    async def garbage(peer: Peer, _command: BaseCommand) -> None:
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with (
        ScriptedServer(garbage, handshake=False) as wrong,
        ScriptedServer(three_partitions) as server,
        pool_to(free_port(), wrong.port, server.port) as pool,
    ):
        for _ in range(6):
            assert await pool.use(ask) == 3
            for client in list(pool._open):
                client.abort()
        states = list(pool._health.states().values())
        assert states == ["down", "down", "up"]


async def test_a_connection_that_goes_dead_is_noticed_in_time_to_ask_another_broker() -> None:
    """Half-open after the handshake: neither answers nor PONGs come."""
    async with (
        ScriptedServer(keep_alive=False) as dead,
        ScriptedServer(three_partitions) as server,
        pool_to(dead.port, server.port, keep_alive=0.05, connection_wait=AGES) as pool,
    ):
        for _ in range(3):
            assert await pool.use(ask) == 3
            for client in list(pool._open):
                client.abort()


async def test_a_refused_identity_is_not_asked_for_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(peer: Peer, _command: BaseCommand) -> None:
        peer.send(
            commands.error(commands.CONNECTION_REQUEST_ID, ServerError.AuthenticationError, "who are you")
        )

    async with ScriptedServer(refuse, handshake=False) as server, pool_to(server.port) as pool:
        pool._options = replace(pool._options, first_backoff=AGES / 2, longest_backoff=AGES)
        for _ in range(5):
            with pytest.raises(HandshakeRefused, match="who are you"):
                await pool.use(ask)
        assert len(server.peers) == 1
        assert pool._health.states() == {f"127.0.0.1:{server.port}": "unknown"}, "the broker is not to blame"
        time_passes(monkeypatch, 2 * AGES)
        with pytest.raises(HandshakeRefused, match="who are you"):
            await pool.use(ask)
        assert len(server.peers) == 2


async def test_without_a_place_there_is_an_error_and_none_is_lost() -> None:
    async with (
        ScriptedServer(three_partitions) as server,
        pool_to(server.port, limit=1, connection_wait=0.05) as pool,
    ):
        await pool._places.take()
        with pytest.raises(ConnectionLost, match="all 1 connections to the brokers are in use"):
            await pool.use(ask)
        pool._options = replace(pool._options, connection_wait=AGES)
        pool._places.give_back()
        assert await pool.use(ask) == 3


async def test_who_gives_up_leaves_nothing_behind() -> None:
    async with ScriptedServer(handshake=False) as server, pool_to(server.port) as pool:
        asked = [asyncio.create_task(pool.use(ask)) for _ in range(5)]
        await eventually(lambda: server.peers)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        assert pool.users == 0


async def test_a_request_that_was_given_up_frees_its_place_at_the_server() -> None:
    """The protocol cannot take it back, so its connection is closed; others that wait there get their answers first."""
    answer_now = asyncio.Event()

    async def script(peer: Peer, command: BaseCommand) -> None:
        if len(server.peers) == 1 and command.partitionMetadata.topic == TOPIC:
            return  # never answered
        await answer_now.wait()
        await three_partitions(peer, command)

    async def other(client: LookupSession) -> int:
        return await client.partitioned_metadata("persistent://t/n/other", timeout=AGES)

    async with ScriptedServer(script) as server, pool_to(server.port, wasting=0.0) as pool:
        given_up, waiting = asyncio.create_task(pool.use(ask)), asyncio.create_task(pool.use(other))
        await eventually(lambda: len(_questions(server)) == 2)
        given_up.cancel()
        await eventually(lambda: pool._retired)
        later = asyncio.create_task(pool.use(ask))
        await eventually(lambda: len(server.peers) == 2)
        assert not server.peers[0].reader.at_eof()
        answer_now.set()
        assert [await waiting, await later] == [3, 3]
        await eventually(server.peers[0].reader.at_eof)
        assert pool.connections == 1


async def test_an_unwanted_answer_that_comes_costs_no_connection() -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer, command: BaseCommand) -> None:
        await go_on.wait()
        await three_partitions(peer, command)

    async with ScriptedServer(script) as server, pool_to(server.port, wasting=AGES) as pool:
        given_up = asyncio.create_task(pool.use(ask))
        await eventually(lambda: _questions(server))
        given_up.cancel()
        go_on.set()
        assert await pool.use(ask) == 3
        (client,) = pool._open
        assert client.unwanted == 0
        pool._retire(client)  # as the timer does
        assert await pool.use(ask) == 3
        assert len(server.peers) == 1
