from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker_core.client import ClientError, ConnectionLost
from broker_core.upstream.kafka import ANY, CONTROLLER, ClusterOptions, KafkaCluster
from broker_core.wire.kafka import (
    CREATE_TOPICS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    LIST_GROUPS,
    METADATA,
    ErrorCode,
    Fields,
)
from tests.support.kafka_serving import kafka_broker
from tests.support.ports import free_port
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of


async def test_nodes_are_found_and_asked(tmp_path: Path) -> None:
    async with kafka_broker(tmp_path, node_id=7) as broker:
        assert broker.kafka_address is not None
        cluster = KafkaCluster(ClusterOptions((broker.kafka_address,)))
        await cluster.start()
        assert cluster.nodes is not None
        assert (list(cluster.nodes.nodes), cluster.nodes.controller_id, cluster.problem) == ([7], 7, None)
        for target in (ANY, CONTROLLER, 7):
            answer = await cluster.request(target, DESCRIBE_CLUSTER, None, {})
            assert [row["broker_id"] for row in answer["brokers"]] == [7]
        with pytest.raises(ConnectionLost, match="no node 8"):
            await cluster.request(8, DESCRIBE_CLUSTER, None, {})
        told: list[object] = []
        cluster.on_write.append(told.append)
        await cluster.request(
            CONTROLLER,
            CREATE_TOPICS,
            None,
            {"topics": [{"name": "a", "num_partitions": 2, "replication_factor": 1}]},
            again=False,
        )
        assert told == [{"a": 2}]
        await cluster.stop()
        with pytest.raises(ConnectionLost, match="stopped"):
            await cluster.request(ANY, DESCRIBE_CLUSTER, None, {})


async def test_a_cluster_that_does_not_answer_is_a_problem() -> None:
    cluster = KafkaCluster(ClusterOptions((("127.0.0.1", free_port()),)))
    await cluster.start()
    assert cluster.problem is not None
    assert cluster.nodes is None
    with pytest.raises(ClientError):
        await cluster.request(ANY, DESCRIBE_CLUSTER, None, {})
    await cluster.stop()


async def test_a_node_that_stands_still_is_asked_once_and_any_other_before_it() -> None:
    goes_on = asyncio.Event()

    async def stand_still(_: Asked) -> Fields:
        await goes_on.wait()
        return {"groups": []}

    there, still = ScriptedKafka(node_id=1), ScriptedKafka(node_id=2)
    for node in (there, still):
        node.handlers[METADATA] = lambda _: metadata_of(there, still)
    there.handlers[LIST_GROUPS] = lambda _: {"groups": []}
    still.handlers[LIST_GROUPS] = stand_still
    async with there, still:
        addresses = tuple(("127.0.0.1", node.port) for node in (still, there))
        cluster = KafkaCluster(ClusterOptions(addresses, request_timeout=2.0))
        assert list((await cluster.refresh()).nodes) == [1, 2]
        with pytest.raises(ConnectionLost, match="did not answer ListGroups within 2 s"):
            await cluster.request(2, LIST_GROUPS, None, {})
        assert [asked.api for asked in still.asked].count(LIST_GROUPS) == 1
        for _ in range(8):
            await cluster.request(ANY, LIST_GROUPS, None, {})
        assert cluster.nodes is not None
        assert cluster.in_turn(cluster.nodes) == [1, 2]
        assert [asked.api for asked in still.asked].count(LIST_GROUPS) == 1
        await cluster.stop()
        still.handlers[FIND_COORDINATOR] = stand_still
        there.handlers[FIND_COORDINATOR] = lambda _: {"coordinators": [{"key": "g", "node_id": 1}]}
        cluster = KafkaCluster(ClusterOptions(addresses, request_timeout=2.0))
        assert await cluster.coordinators(["g"], 0) == {"g": 1}  # whatever node is asked first
        goes_on.set()
        await cluster.request(2, LIST_GROUPS, None, {})
        await cluster.stop()


async def test_a_node_is_gone_once_two_looks_do_not_name_it() -> None:
    async with ScriptedKafka(node_id=1) as node, ScriptedKafka(node_id=2) as other:
        both = [node, other]
        node.handlers[METADATA] = lambda _: metadata_of(*both)
        told: list[list[int]] = []
        has_current = asyncio.Event()

        async def tell(nodes: list[int]) -> None:
            told.append(nodes)
            if told[:-1] and nodes == [1]:
                has_current.set()

        address = ("127.0.0.1", node.port)
        slow = KafkaCluster(ClusterOptions((address,), look=3600))
        quick = KafkaCluster(ClusterOptions((address,), look=0.01))
        slow.on_nodes.append(tell)
        await slow.start()
        both.remove(other)  # as a node says that lags after a restart
        await slow.refresh()
        await slow.name([1])
        assert told == [[1, 2]]
        await slow.name([3])  # another one knows it
        assert told == [[1, 2], [1, 2, 3]]
        await slow.stop()
        both.append(other)
        quick.on_nodes.append(tell)
        await quick.start()
        both.remove(other)
        await asyncio.wait_for(has_current.wait(), 60)
        await quick.stop()


async def test_all_callers_wait_until_a_named_node_is_known() -> None:
    async with ScriptedKafka(node_id=1) as node:
        begun, goes_on = asyncio.Event(), asyncio.Event()
        known: list[list[int]] = []

        async def open_ports(nodes: list[int]) -> None:
            begun.set()
            await goes_on.wait()
            known.append(nodes)

        cluster = KafkaCluster(ClusterOptions((("127.0.0.1", node.port),), look=3600))
        await cluster.start()
        cluster.on_nodes.append(open_ports)
        first = asyncio.create_task(cluster.name([2]))
        await begun.wait()
        later = [asyncio.create_task(cluster.name(nodes)) for nodes in ([2], [1, 3])]
        done, _ = await asyncio.wait(later, timeout=0.2)
        assert not done
        goes_on.set()
        await asyncio.gather(first, *later)
        assert known == [[1, 2], [1, 2, 3]]
        await cluster.stop()


async def test_a_controller_that_has_moved_is_looked_for_anew() -> None:
    async with ScriptedKafka(node_id=1) as node, ScriptedKafka(node_id=2) as other:
        places = {"controller": 1}
        for number, each in enumerate((node, other), 1):

            def created(_: object, number: int = number) -> Fields:
                code = 0 if places["controller"] == number else ErrorCode.NOT_CONTROLLER
                return {"topics": [{"name": "a", "error_code": code}]}

            each.handlers[METADATA] = lambda _: metadata_of(node, other, controller=places["controller"])
            each.handlers[CREATE_TOPICS] = created
        cluster = KafkaCluster(ClusterOptions((("127.0.0.1", node.port),)))
        topics = [{"name": "a", "num_partitions": 1, "replication_factor": 1}]
        told = []
        for places["controller"] in (1, 2, 2):
            answer = await cluster.request(CONTROLLER, CREATE_TOPICS, None, {"topics": topics}, again=False)
            told.append(answer["topics"][0]["error_code"])
        assert told == [0, 41, 0]
        await cluster.stop()
