"""Topics that a cluster answered are read by their edges, and encoded again as the table of Metadata writes them."""

from __future__ import annotations

import random
import uuid

import pytest

from broker_core.listing.topic_table import TopicTable
from broker_core.wire.kafka import (
    DESCRIBE_TOPIC_PARTITIONS,
    METADATA,
    Encoded,
    Fields,
    MalformedMessage,
    response_frame,
)
from broker_core.wire.kafka.topic_fragments import (
    PlacedTopics,
    placed_described_family,
    placed_metadata_family,
    read_placed_topics,
    with_operations,
)
from broker_core.wire.kafka.writer import Writer

WORDS = random.Random(5)


def topic(name: str, *partitions: tuple[int, int, int]) -> Fields:
    """One with so many replicas, in-sync ones and offline ones in each partition."""
    return {
        "error_code": 0,
        "name": name,
        "topic_id": uuid.UUID(int=WORDS.getrandbits(128)),
        "is_internal": name == "__consumer_offsets",
        "partitions": [
            {
                "error_code": 0 if in_sync else 5,
                "partition_index": number,
                "leader_id": number % 3 if in_sync else -1,
                "leader_epoch": 100 + number,
                "replica_nodes": list(range(replicas)),
                "isr_nodes": list(range(in_sync)),
                "offline_replicas": list(range(offline)),
            }
            for number, (replicas, in_sync, offline) in enumerate(partitions)
        ],
        "topic_authorized_operations": 3576,
    }


TOPICS = [
    topic("__consumer_offsets", *[(3, 3, 0)] * 50),
    topic("a", (1, 1, 0)),
    topic("b" * 126, (3, 3, 0), (3, 2, 1), (3, 3, 0)),
    topic("c" * 127, *[(2, 2, 0)] * 300),
    topic("d" * 249, (3, 0, 3), (3, 3, 0)),
    topic("e", (40, 40, 0), (1, 1, 0)),
]


def encoded(topics: list[Fields]) -> bytes:
    writer = Writer()
    METADATA.write_response(writer, {"topics": topics}, 12)
    whole = b"".join(writer.pieces())
    before = Writer()
    METADATA.write_response(before, {"topics": []}, 12)
    head = len(b"".join(before.pieces())) - 2  # the length of the array, and the tags
    return whole[head + (1 if len(topics) < 127 else 2) : -1]


def read(topics: list[Fields]) -> PlacedTopics:
    data = encoded(topics)
    found, end = read_placed_topics(data, 0, len(topics))
    assert end == len(data)
    return found


def table_of(topics: list[Fields]) -> TopicTable:
    found = read(topics)
    return TopicTable.of_columns(found.names, found.partitions, found.ids, placements=found.placements)


@pytest.mark.parametrize("version", range(14))
def test_every_version(version: int) -> None:
    [chunk] = table_of(TOPICS[::-1]).chunks
    rendered = placed_metadata_family(version, 3576).of(chunk)
    fields: Fields = {"topics": Encoded(len(chunk), [rendered.data])}
    assert b"".join(response_frame(METADATA, version, 1, fields)) == b"".join(
        response_frame(METADATA, version, 1, {"topics": TOPICS})
    )


def test_a_part_of_a_topic_is_that_of_a_page() -> None:
    [chunk] = table_of(TOPICS).chunks
    family = placed_metadata_family(12, 3576)
    for row, each in enumerate(TOPICS):
        for start, stop in ((0, 1), (1, 2), (0, len(each["partitions"]))):
            part = {**each, "partitions": each["partitions"][start:stop]}
            assert family.layout.part(chunk.row(row), start, stop, None) == encoded([part])


@pytest.mark.parametrize("version", [1, 4, 5, 8, 12])
@pytest.mark.parametrize("lost", [{0}, {1, 2}, {7}])
def test_nodes_that_clients_cannot_reach_lead_nothing(version: int, lost: set[int]) -> None:
    def without(part: Fields) -> Fields:
        offline = part["offline_replicas"]
        new = [node for node in part["replica_nodes"] if node in lost and node not in offline]
        no_leader = {"error_code": 5, "leader_id": -1} if part["leader_id"] in lost else {}
        return {**part, "offline_replicas": [*offline, *new], **no_leader}

    wanted = [{**each, "partitions": [*map(without, each["partitions"])]} for each in TOPICS]
    [chunk] = table_of(TOPICS[::-1]).chunks
    family = placed_metadata_family(version, 3576, frozenset(lost))
    fields: Fields = {"topics": Encoded(len(chunk), [family.of(chunk).data])}
    assert b"".join(response_frame(METADATA, version, 1, fields)) == b"".join(
        response_frame(METADATA, version, 1, {"topics": wanted})
    )


def test_described_topics_have_the_same_partitions_and_no_eligible_replicas() -> None:
    [chunk] = table_of(TOPICS[::-1]).chunks
    family = placed_described_family(256)

    def frame(topics: object) -> bytes:
        return b"".join(response_frame(DESCRIBE_TOPIC_PARTITIONS, 0, 1, {"topics": topics}))

    null = {"eligible_leader_replicas": None, "last_known_elr": None}
    rows = [
        {
            **each,
            "partitions": [one | null for one in each["partitions"]],
            "topic_authorized_operations": 256,
        }
        for each in TOPICS
    ]
    assert frame(Encoded(len(chunk), [family.of(chunk).data])) == frame(rows)
    for number, row in enumerate(rows):
        for start, stop in ((0, 1), (1, 2), (7, 7)):
            piece = family.layout.part(chunk.row(number), start, stop, None)
            assert frame(Encoded(1, [piece])) == frame([row | {"partitions": row["partitions"][start:stop]}])


def test_some_topics_keep_their_placements() -> None:
    [chunk] = table_of(TOPICS).chunks
    picked = chunk.some(__import__("numpy").array([1, 3]))
    assert [picked.row(number).placement for number in (0, 1)] == [
        chunk.row(number).placement for number in (1, 3)
    ]


def test_operations_are_those_of_the_caller() -> None:
    import numpy as np

    [chunk] = table_of(TOPICS[:2]).chunks
    family = placed_metadata_family(9, 0)
    made = with_operations(family.of(chunk), family, np.array([3576, 3576], np.int32))
    fields: Fields = {"topics": Encoded(2, [made.data])}
    assert b"".join(response_frame(METADATA, 9, 1, fields)) == b"".join(
        response_frame(METADATA, 9, 1, {"topics": TOPICS[:2]})
    )


def test_a_topic_that_is_gone_is_left_out() -> None:
    gone = {**topic("gone"), "error_code": 3, "partitions": []}
    assert read([gone, *TOPICS]).names.to_pylist() == [each["name"].encode() for each in TOPICS]


def test_a_topic_with_an_error_is_no_topic() -> None:
    with pytest.raises(MalformedMessage, match="has the error 5"):
        read([{**topic("a"), "error_code": 5}])


def test_partitions_come_in_their_order() -> None:
    mixed = topic("a", (1, 1, 0), (1, 1, 0))
    mixed["partitions"].reverse()
    with pytest.raises(MalformedMessage, match="not in order"):
        read([mixed])


def test_what_is_cut_short_or_changed_is_malformed_or_read() -> None:
    data = encoded(TOPICS)
    for end in range(0, len(data), 7):
        with pytest.raises(MalformedMessage):
            read_placed_topics(data[:end], 0, len(TOPICS))
    for _ in range(1000):
        wrong = bytearray(data)
        for _ in range(WORDS.randrange(1, 4)):
            wrong[WORDS.randrange(len(wrong))] = WORDS.randrange(256)
        try:
            found, end = read_placed_topics(bytes(wrong), 0, len(TOPICS))
        except MalformedMessage:
            continue
        assert end <= len(wrong)
        assert len(found.names) == len(found.partitions) == len(found.placements)
