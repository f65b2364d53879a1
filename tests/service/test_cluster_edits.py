"""Creates and deletes over HTTP of topics that are a Kafka cluster's; a server of this project plays the cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from broker_core.broker import Broker
from tests.support.kafka_gateway import Cluster, Secrets, gateway, small_cluster


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with small_cluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
async def front(tmp_path: Path, cluster: Cluster) -> AsyncIterator[Broker]:
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}) as broker:
        yield broker


async def asked(
    front: Broker, method: str, topic: str, body: object = None, *, namespace: str = "acme/kafka"
) -> tuple[int, Any]:
    assert front.http_address is not None
    url = "http://{}:{}/v1/namespaces/{}/topics/{}".format(*front.http_address, namespace, topic)
    async with aiohttp.ClientSession() as http, http.request(method, url, json=body) as answer:
        return answer.status, await answer.json() if answer.content_length else None


async def test_a_topic_is_created_and_deleted_at_the_cluster(front: Broker, cluster: Cluster) -> None:
    status, made = await asked(front, "PUT", "new", {"partitions": 2, "configs": {"retention.ms": "1000"}})
    assert (status, made["partitions"]) == (201, 2)
    there = (await cluster.describe_topics(["new"]))["new"]
    assert len(there.partitions) == 2
    status, shown = await asked(front, "GET", "new")
    assert (status, shown["topic_id"], shown["partitions"]) == (200, made["topic_id"], 2)
    assert (await asked(front, "DELETE", "new"))[0] == 204
    assert (await asked(front, "GET", "new"))[0] == 404
    assert (await asked(front, "DELETE", "new"))[0] == 404
    assert "new" not in (await cluster.list_topics()).names()


async def test_what_is_hidden_is_neither_deleted_nor_created(front: Broker, cluster: Cluster) -> None:
    assert (await asked(front, "DELETE", "secret.keys"))[0] == 404
    assert (await asked(front, "PUT", "secret.keys", {"partitions": 9}))[0] == 409
    assert len((await cluster.describe_topics(["secret.keys"]))["secret.keys"].partitions) == 1


@pytest.mark.parametrize(
    ("method", "topic", "body", "status", "said"),
    [
        ("PUT", "new", {"properties": {"a": "b"}}, 409, "no properties"),
        ("PATCH", "orders", {"properties": {"a": "b"}}, 409, "created and deleted here"),
        ("PUT", "orders", {"partitions": 9}, 409, "orders"),
        ("PATCH", "orders", {"partitions": 9}, 409, "created and deleted here"),
        ("PUT", "a~b", {}, 400, "other than ASCII alphanumerics, '.', '_' and '-'"),
        ("DELETE", "none", None, 404, "no topic persistent://acme/kafka/none in the Kafka cluster"),
        ("DELETE", "orders-partition-0", None, 404, "orders-partition-0"),
    ],
)
async def test_what_a_cluster_does_not_do_is_refused(
    front: Broker, cluster: Cluster, method: str, topic: str, body: object, status: int, said: str
) -> None:
    answer = await asked(front, method, topic, body)
    assert answer[0] == status, answer
    assert said in answer[1]["detail"]
    assert len((await cluster.describe_topics(["orders"]))["orders"].partitions) == 3


async def test_other_namespaces_are_the_catalogue_s(front: Broker, cluster: Cluster) -> None:
    assert (await asked(front, "PUT", "mine", {}, namespace="acme/other"))[0] == 201
    assert "mine" not in (await cluster.list_topics()).names()
