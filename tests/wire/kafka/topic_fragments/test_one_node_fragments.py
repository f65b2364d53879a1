"""The topics of all answers of the one node, encoded by columns, are those that are written one by one."""

from __future__ import annotations

import uuid

import pytest

from broker_core.listing.topic_table import TopicChunk
from broker_core.wire.kafka import (
    DESCRIBE_LOG_DIRS,
    DESCRIBE_TOPIC_PARTITIONS,
    LIST_CONFIG_RESOURCES,
    LIST_TOPICS,
    METADATA,
    Encoded,
    Fields,
    response_frame,
)
from broker_core.wire.kafka.topic_fragments import (
    LISTED_FAMILY,
    RESOURCE_FAMILY,
    described_family,
    log_dir_family,
    metadata_family,
    metadata_partitions,
)
from tests.support.topic_chunks import chunk_of

TOPICS = {"__consumer_offsets": 50, "a": 1, "b" * 126: 2, "c" * 127: 200, "d" * 249: 1}


def rows_of(chunk: TopicChunk, operations: int) -> list[Fields]:
    topics = [chunk.row(number) for number in range(len(chunk))]
    return [
        {
            "name": topic.name.decode(),
            "topic_id": uuid.UUID(bytes=topic.topic_id),
            "is_internal": topic.name == b"__consumer_offsets",
            "partitions": [
                {
                    "partition_index": index,
                    "leader_id": 7,
                    "leader_epoch": 0,
                    "replica_nodes": [7],
                    "isr_nodes": [7],
                }
                for index in range(topic.partitions)
            ],
            "topic_authorized_operations": operations,
        }
        for topic in topics
    ]


@pytest.mark.parametrize("version", range(14))
def test_every_version(version: int) -> None:
    chunk = chunk_of(TOPICS)
    rendered = metadata_family(version, 7, 3576).of(chunk)
    encoded = Encoded(len(chunk), [rendered.data])
    one_by_one = b"".join(response_frame(METADATA, version, 1, {"topics": rows_of(chunk, 3576)}))
    assert b"".join(response_frame(METADATA, version, 1, {"topics": encoded})) == one_by_one
    assert rendered.offsets.tolist()[-1] == len(rendered.data)


@pytest.mark.parametrize("version", range(14))
def test_the_partitions_of_a_topic(version: int) -> None:
    [row] = rows_of(chunk_of({"a": 3}), 0)
    own = {**row, "partitions": metadata_partitions(version, 7, 3)}
    assert response_frame(METADATA, version, 1, {"topics": [own]}) == response_frame(
        METADATA, version, 1, {"topics": [row]}
    )


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


def test_the_entries_of_list_topics() -> None:
    rows = [{"name": name, "internal": name == "__consumer_offsets"} for name in TOPICS]
    encoded = Encoded(len(rows), [LISTED_FAMILY.of(chunk_of(TOPICS)).data])
    assert b"".join(response_frame(LIST_TOPICS, 0, 1, {"topics": encoded})) == b"".join(
        response_frame(LIST_TOPICS, 0, 1, {"topics": rows})
    )


def test_the_topics_among_config_resources() -> None:
    rows = [{"resource_name": name, "resource_type": 2} for name in TOPICS]
    encoded = Encoded(len(rows), [RESOURCE_FAMILY.of(chunk_of(TOPICS)).data])
    assert b"".join(response_frame(LIST_CONFIG_RESOURCES, 1, 1, {"config_resources": encoded})) == b"".join(
        response_frame(LIST_CONFIG_RESOURCES, 1, 1, {"config_resources": rows})
    )


FEW_TOPICS = {"a": 1, "b" * 126: 2, "c" * 127: 200}


def test_the_logs_of_a_directory() -> None:
    rows = [
        {"name": name, "partitions": [{"partition_index": index} for index in range(count)]}
        for name, count in FEW_TOPICS.items()
    ]
    for version in range(1, 6):
        family = log_dir_family(version)
        whole = Encoded(len(rows), [family.of(chunk_of(FEW_TOPICS)).data])
        part = Encoded(1, [family.layout.part(chunk_of({"a": 9}).row(0), 3, 5, None)])
        cut = {"name": "a", "partitions": [{"partition_index": 3}, {"partition_index": 4}]}
        for encoded, wanted in ((whole, rows), (part, [cut])):
            frames = [
                b"".join(
                    response_frame(
                        DESCRIBE_LOG_DIRS, version, 1, {"results": [{"log_dir": "/d", "topics": each}]}
                    )
                )
                for each in (encoded, wanted)
            ]
            assert frames[0] == frames[1]
