from __future__ import annotations

import uuid

from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, Encoded, Fields, response_frame
from broker_core.wire.kafka.topic_fragments import described_family
from tests.support.topic_chunks import chunk_of

TOPICS = {"__consumer_offsets": 50, "a": 1, "b" * 126: 2, "c" * 127: 200, "d" * 249: 1}


def row_of(name: str, start: int, stop: int, operations: int) -> Fields:
    partition = {"leader_id": 7, "leader_epoch": 0, "replica_nodes": [7], "isr_nodes": [7]}
    return {
        "name": name,
        "topic_id": uuid.UUID(bytes=name.encode()[-16:].ljust(16, b"-")),
        "is_internal": name == "__consumer_offsets",
        "partitions": [
            {"partition_index": index, "eligible_leader_replicas": [], "last_known_elr": [], **partition}
            for index in range(start, stop)
        ],
        "topic_authorized_operations": operations,
    }


def frame(topics: object) -> bytes:
    return b"".join(response_frame(DESCRIBE_TOPIC_PARTITIONS, 0, 1, {"topics": topics}))


def test_whole_topics() -> None:
    rendered = described_family(7).of(chunk_of(TOPICS))
    rows = [row_of(name, 0, count, 3576) for name, count in TOPICS.items()]
    assert frame(Encoded(len(rows), [rendered.data])) == frame(rows)


def test_a_topic_that_the_end_of_a_page_cuts() -> None:
    row = chunk_of({"a": 300}).row(0)
    for start, stop in ((0, 2), (2, 300), (300, 300)):
        piece = described_family(7).layout.part(row, start, stop, 256)
        assert frame(Encoded(1, [piece])) == frame([row_of("a", start, stop, 256)])
