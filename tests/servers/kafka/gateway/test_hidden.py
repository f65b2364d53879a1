from __future__ import annotations

import struct
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.client.kafka import AdminClient
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.call import KafkaCall
from broker_core.servers.kafka.gateway.hidden import topics_of_member
from broker_core.servers.kafka.handler_row import HandlerRow
from broker_core.wire.kafka import DESCRIBE_ACLS, OFFSET_FETCH, Fields
from tests.support.kafka_gateway import Cluster, Secrets, gateway, small_cluster
from tests.support.kafka_serving import raw_client
from tests.support.ports import free_port


@pytest.fixture
async def cluster_of_acls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    """A cluster whose nodes have ACLs of topics: by name, of a prefix and of all."""
    acl = {"principal": "User:x", "host": "*", "operation": 3, "permission_type": 3}

    async def described(_: KafkaCall) -> Fields:
        rows = [("secret.keys", 3), ("*", 3), ("orders", 3), ("secret.", 4)]
        return {
            "resources": [
                {"resource_type": 2, "resource_name": name, "pattern_type": pattern, "acls": [acl]}
                for name, pattern in rows
            ]
        }

    rows = {DESCRIBE_ACLS.key: HandlerRow(DESCRIBE_ACLS, later=described)}
    monkeypatch.setattr("broker_core.servers.kafka.server.HANDLERS", {**HANDLERS, **rows})
    async with small_cluster(tmp_path) as cluster:
        yield cluster


async def test_what_is_hidden_is_in_no_answer(through: AdminClient, cluster: Cluster) -> None:
    described = await through.describe_topics(["orders", "secret.keys"])
    assert "secret.keys" in described.errors
    direct = (await cluster.describe_topics(["orders"]))["orders"]
    assert described["orders"].topic_id == direct.topic_id
    assert len(described["orders"].partitions) == 3


async def test_acls_of_hidden_topics_are_in_no_answer_nor_cursor(
    tmp_path: Path, cluster_of_acls: Cluster
) -> None:
    filters = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    body: dict[str, Any] = dict.fromkeys(filters, 1)
    async with (
        gateway(tmp_path, cluster_of_acls.address, {"secrets": Secrets()}) as front,
        raw_client(front.kafka_address or ("", 0)) as client,
    ):
        rows = (await client.ask(DESCRIBE_ACLS, 3, body))["resources"]
        # A prefix, and every topic, name none.
        shown = [("*", 3), ("orders", 3), ("secret.", 4)]
        assert sorted((row["resource_name"], row["pattern_type"]) for row in rows) == shown
        found: list[str] = []
        cursor = None
        while not found or cursor is not None:
            page = await client.ask(
                DESCRIBE_ACLS, 3, {**body, "response_pagination_limit": 1, "cursor": cursor}
            )
            found += [row["resource_name"] for row in page["resources"]]
            cursor = page["next_cursor"]
            assert cursor is None or cursor["resource_name"] != "secret.keys"
        assert found == [name for name, _ in shown]


@pytest.mark.parametrize("is_node", [False, True])
async def test_an_id_of_a_hidden_topic_is_one_of_no_topic(
    tmp_path: Path, cluster: Cluster, is_node: bool
) -> None:
    described = await cluster.describe_topics(["orders", "secret.keys"])
    ids = {name: described[name].topic_id for name in ("orders", "secret.keys")}
    unknown = [ids["secret.keys"], uuid.UUID(int=7)]
    topics = [{"topic_id": each, "partition_indexes": [0, 1]} for each in [*unknown, ids["orders"]]]
    port = free_port()
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}, ports=str(port)) as front:
        address = ("127.0.0.1", port) if is_node else front.kafka_address or ("", 0)
        async with raw_client(address) as client:
            answer = await client.ask(
                OFFSET_FETCH, 10, {"groups": [{"group_id": "g", "member_epoch": -1, "topics": topics}]}
            )
    codes = {
        row["topic_id"]: [part["error_code"] for part in row["partitions"]]
        for row in answer["groups"][0]["topics"]
    }
    assert codes == {each: [100, 100] for each in unknown} | {ids["orders"]: [0, 0]}


def test_the_topics_of_a_member_are_read_from_its_bytes() -> None:
    subscription = struct.pack(">hih6sh5s", 3, 2, 6, b"orders", 5, b"audit") + b"user data"
    assert topics_of_member(subscription, with_partitions=False) == ["orders", "audit"]
    assignment = struct.pack(">hih6siiih5si", 3, 2, 6, b"orders", 2, 0, 1, 5, b"audit", 0)
    assert topics_of_member(assignment, with_partitions=True) == ["orders", "audit"]
    assert topics_of_member(b"", with_partitions=True) == []
    for broken in (
        b"\0",
        assignment[:9],
        struct.pack(">hi", 3, 2**31 - 1),
        b"\0\3\0\0\0\1\0\1a\x7f\xff\xff\xff",
    ):
        assert topics_of_member(broken, with_partitions=True) is None
