from __future__ import annotations

import asyncio

import pytest

from broker_core.client import ConnectionLost, InvalidServiceUrl
from broker_core.client.kafka import AdminClient, NewTopic, Plain, TimeoutException
from broker_core.client.kafka.cluster_connections import ClusterConnections
from broker_core.wire.kafka import CREATE_TOPICS, LIST_TOPICS, METADATA, Fields
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of


def listing(*names: str) -> Fields:
    return {"topics": [{"name": name} for name in names]}


async def test_one_of_several_addresses_is_enough() -> None:
    async with (
        ScriptedKafka({LIST_TOPICS: lambda _: listing("orders")}) as node,
        AdminClient(f"127.0.0.1:{free_port()},{node.address}") as client,
    ):
        assert (await client.list_topics()).names() == ["orders"]


async def test_it_connects_again() -> None:
    async with (
        ScriptedKafka({LIST_TOPICS: lambda _: listing("orders")}) as node,
        AdminClient(node.address) as client,
    ):
        await client.list_topics()
        node.drop()
        assert (await client.list_topics()).names() == ["orders"]
        assert node.connections == 2


async def test_it_waits_for_a_server_that_starts() -> None:
    port = free_port()
    async with AdminClient(f"127.0.0.1:{port}", api_timeout=60) as client:
        asked = asyncio.create_task(client.list_topics())
        await eventually(lambda: client._cluster is not None and bool(client._cluster._failed))
        node = ScriptedKafka({LIST_TOPICS: lambda _: listing("orders")})
        await node.start(port)
        try:
            assert (await asked).names() == ["orders"]
        finally:
            await node.stop()


async def test_a_controller_that_moves_is_followed() -> None:
    async with ScriptedKafka() as first, ScriptedKafka(node_id=2) as second:
        where = [1, 1, 2]

        def create(node: ScriptedKafka) -> None:
            def answer(asked: Asked) -> Fields:
                code = 0 if node is second else 41
                return {
                    "topics": [{"name": each["name"], "error_code": code} for each in asked.value["topics"]]
                }

            node.handlers[CREATE_TOPICS] = answer

        create(first)
        create(second)
        for node in (first, second):
            node.handlers[METADATA] = lambda _: metadata_of(first, second, controller=where.pop(0))
        async with AdminClient(first.address, api_timeout=20) as client:
            result = await client.create_topics([NewTopic("orders")])
        assert result.all() == {"orders": None}
        assert (len(first.of(CREATE_TOPICS)), len(second.of(CREATE_TOPICS))) == (2, 1)


async def test_when_the_time_is_up_it_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    wait = ClusterConnections.wait

    async def noted(cluster: ClusterConnections, seconds: float) -> None:
        pauses.append(seconds)
        await wait(cluster, seconds)

    monkeypatch.setattr(ClusterConnections, "wait", noted)
    async with AdminClient(f"127.0.0.1:{free_port()}", api_timeout=AGES) as client:
        asked = asyncio.create_task(client.list_topics())
        await eventually(lambda: pauses)
        time_passes(monkeypatch, AGES + 1)
        with pytest.raises(TimeoutException, match=r"no answer within 3600 s: cannot connect"):
            await asked
        with pytest.raises(TimeoutException, match=r"within 0\.05 s"):
            await client.list_topics(timeout=0.05)


async def test_without_retries_the_first_error_is_raised() -> None:
    async with AdminClient(f"127.0.0.1:{free_port()}", retries=0) as client:
        with pytest.raises(ConnectionLost, match="cannot connect"):
            await client.describe_cluster()


async def test_a_closed_client() -> None:
    async def silent(_asked: Asked) -> Fields:
        await asyncio.Event().wait()
        raise AssertionError

    async with ScriptedKafka({LIST_TOPICS: silent}) as node:
        client = AdminClient(node.address)
        asked = asyncio.create_task(client.list_topics())
        await eventually(lambda: bool(node.of(LIST_TOPICS)))
        await client.close()
        with pytest.raises(ConnectionLost):
            await asked
        with pytest.raises(ConnectionLost, match="is closed"):
            await client.list_topics()
        await client.close()


def test_what_cannot_be() -> None:
    with pytest.raises(InvalidServiceUrl):
        AdminClient("pulsar://a:6650")
    for wrong in ({"api_timeout": -1}, {"retries": -1}, {"max_answer": 0}, {"request_timeout": float("nan")}):
        with pytest.raises(ValueError):
            AdminClient("a:9092", **wrong)


def test_no_secret_is_shown() -> None:
    assert repr(AdminClient("a:9092", sasl=Plain("alice", "secret"))) == "<AdminClient of a:9092>"


def test_it_belongs_to_one_loop() -> None:
    client = AdminClient(f"127.0.0.1:{free_port()}", retries=0)
    for kind in (ConnectionLost, RuntimeError):
        with pytest.raises(kind):
            asyncio.run(client.list_topics())
