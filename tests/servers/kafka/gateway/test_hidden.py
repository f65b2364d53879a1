from __future__ import annotations

import struct

from broker_core.client.kafka import AdminClient
from broker_core.servers.kafka.gateway.hidden import topics_of_member
from tests.support.kafka_gateway import Cluster


async def test_what_is_hidden_is_in_no_answer(through: AdminClient, cluster: Cluster) -> None:
    described = await through.describe_topics(["orders", "secret.keys"])
    assert "secret.keys" in described.errors
    direct = (await cluster.describe_topics(["orders"]))["orders"]
    assert described["orders"].topic_id == direct.topic_id
    assert len(described["orders"].partitions) == 3


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
