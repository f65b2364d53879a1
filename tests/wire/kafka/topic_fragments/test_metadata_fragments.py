"""Topics that kernels encode are the same bytes as topics that the table of Metadata writes one by one."""

from __future__ import annotations

import uuid

import pytest

from broker_core.listing.topic_table import TopicChunk
from broker_core.wire.kafka import METADATA, Encoded, Fields, response_frame
from broker_core.wire.kafka.topic_fragments import metadata_family, metadata_partitions
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
