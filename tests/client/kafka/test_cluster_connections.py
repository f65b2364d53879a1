from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from broker_core.client import ConnectionLost
from broker_core.client.kafka.cluster_connections import ClusterConnections
from broker_core.client.kafka.kafka_errors import NotControllerException, RebootstrapRequiredException
from broker_core.client.kafka.node_connection import ConnectionOptions, NodeConnection
from broker_core.wire.kafka import LIST_TOPICS, METADATA, SASL_HANDSHAKE, Fields
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of

OPTIONS = ConnectionOptions("test", connect_timeout=AGES, request_timeout=AGES, max_answer=1_000_000)


@asynccontextmanager
async def connected(*ports: int, options: ConnectionOptions = OPTIONS) -> AsyncIterator[ClusterConnections]:
    async def open_one(address: tuple[str, int]) -> NodeConnection:
        return await NodeConnection.open(address, options)

    cluster = ClusterConnections([("127.0.0.1", port) for port in ports], open_one)
    try:
        yield cluster
    finally:
        await cluster.close()


async def test_one_connection_for_all_who_ask_at_once() -> None:
    async with ScriptedKafka() as node, connected(node.port) as cluster:
        several = await asyncio.gather(*(cluster.any_node() for _ in range(5)))
        assert {id(each) for each in several} == {id(several[0])}
        assert await cluster.controller() is several[0]
        assert node.connections == 1
        assert len(node.of(METADATA)) == 1


async def test_an_address_where_nobody_is_is_passed_over() -> None:
    nobody = free_port()
    async with ScriptedKafka() as node, connected(nobody, node.port) as cluster:
        assert (await cluster.any_node()).address == ("127.0.0.1", node.port)
        assert cluster._order()[-1] == ("127.0.0.1", nobody)


async def test_nobody_at_all() -> None:
    async with connected(free_port(), free_port()) as cluster:
        with pytest.raises(ConnectionLost, match="cannot connect"):
            await cluster.any_node()


async def test_the_controller_is_asked_at_its_own_address() -> None:
    async with ScriptedKafka() as first, ScriptedKafka(node_id=2) as second:
        first.handlers[METADATA] = lambda _: metadata_of(first, second, controller=2)
        async with connected(first.port) as cluster:
            assert (await cluster.controller()).address == ("127.0.0.1", second.port)
            assert (await cluster.node(1)).address == ("127.0.0.1", first.port)
            assert (await cluster.cluster()).cluster_id == "scripted"


async def test_a_controller_that_cannot_be_reached_is_looked_for_again() -> None:
    async with ScriptedKafka() as first, ScriptedKafka(node_id=2) as second:
        first.handlers[METADATA] = lambda _: metadata_of(first, second, controller=2)
        async with connected(first.port) as cluster:
            await cluster.cluster()
            await second.stop()
            with pytest.raises(ConnectionLost):
                await cluster.controller()
            first.handlers[METADATA] = lambda _: metadata_of(first)
            assert (await cluster.controller()).address == ("127.0.0.1", first.port)
            await second.start()


async def test_a_cluster_without_a_controller_or_a_node() -> None:
    async with ScriptedKafka() as node, connected(node.port) as cluster:
        node.handlers[METADATA] = lambda _: metadata_of(node, controller=-1)
        with pytest.raises(NotControllerException):
            await cluster.controller()
        with pytest.raises(ConnectionLost, match="no node 7"):
            await cluster.node(7)
        assert len(node.of(METADATA)) == 2  # asked again each time


async def test_a_server_may_want_the_client_to_begin_again() -> None:
    async with ScriptedKafka() as node, connected(node.port) as cluster:
        before = await cluster.any_node()
        node.handlers[METADATA] = lambda _: {"error_code": 129}
        with pytest.raises(RebootstrapRequiredException):
            await cluster.cluster()
        cluster.rebootstrap()
        assert not before.is_usable
        node.handlers[METADATA] = lambda _: metadata_of(node)
        assert (await cluster.controller()) is not before


async def test_after_all_known_nodes_are_gone_the_bootstrap_addresses_are_tried() -> None:
    async with ScriptedKafka() as first, ScriptedKafka(node_id=2) as second:
        first.handlers[METADATA] = lambda _: metadata_of(second)
        async with connected(first.port) as cluster:
            await cluster.controller()
            await second.stop()
            first.drop()
            await eventually(lambda: not any(each.is_usable for each in cluster._open.values()))
            assert (await cluster.any_node()).address == ("127.0.0.1", first.port)
            await second.start()


async def test_a_connection_that_ends_soon_may_still_answer() -> None:
    held = asyncio.Event()

    async def list_topics(_asked: Asked) -> Fields:
        await held.wait()
        return {"topics": []}

    async with ScriptedKafka({LIST_TOPICS: list_topics}) as node, connected(node.port) as cluster:
        former = await cluster.any_node()
        asked = asyncio.create_task(former.ask(LIST_TOPICS, {}))
        await eventually(lambda: former.under_way == 1)
        former._session_end = 0.0
        assert await cluster.any_node() is not former
        held.set()
        assert (await asked)["topics"] == []


async def test_what_waits_when_it_is_closed_fails() -> None:
    async def silent(_asked: Asked) -> Fields:
        await asyncio.Event().wait()
        raise AssertionError

    async with ScriptedKafka({SASL_HANDSHAKE: silent}) as node:
        node.handlers[METADATA] = silent
        async with connected(node.port) as cluster:
            waiting = asyncio.create_task(cluster.cluster())
            await eventually(lambda: bool(node.of(METADATA)))
            await cluster.close()
            with pytest.raises(ConnectionLost, match="closed"):
                await waiting
            with pytest.raises(ConnectionLost, match="the client is closed"):
                await cluster.any_node()


async def test_who_is_cancelled_is_cancelled() -> None:
    async with ScriptedKafka() as node, connected(node.port) as cluster:
        waiting = asyncio.create_task(cluster.any_node())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await cluster.any_node()
        assert node.connections == 1


async def test_a_pause_ends_when_it_is_closed() -> None:
    async with ScriptedKafka() as node, connected(node.port) as cluster:
        waiting = asyncio.create_task(cluster.wait(3600))
        await asyncio.sleep(0)
        await cluster.close()
        await waiting
        await cluster.wait(0.0)
