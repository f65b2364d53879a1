from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.wire.kafka import (
    API_VERSIONS,
    APIS,
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TOPICS,
    LIST_TRANSACTIONS,
    METADATA,
    NOT_REQUESTED,
    OFFSET_FETCH,
    ZERO_ID,
    Api,
    Reader,
    Writer,
    read_response,
    response_frame,
)
from tests.support.kafka_oracles import DIRECTIONS, Direction, libraries_of, schema_differences
from tests.support.kafka_values import EXAMPLES, assert_read_as_written, messages, versions_of
from tests.support.one_test import in_one_test

#: kafka-python brings Kafka's definitions of its own; ours has none.
KAFKAS = [api for api in APIS.values() if api is not LIST_TOPICS and "kafka-python" in libraries_of(api)]


def test_apis_are_found_by_their_keys() -> None:
    assert all(api.key == key for key, api in APIS.items())


@in_one_test("direction", DIRECTIONS)
@in_one_test("api", KAFKAS)
def test_messages_are_declared_as_kafka_declares_them(api: Api, direction: Direction) -> None:
    assert schema_differences(api, direction) == []


@pytest.mark.many
@pytest.mark.parametrize(("api", "version"), versions_of(*APIS.values()))
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_messages_are_read_as_written_in_every_version(api: Api, version: int, data: st.DataObject) -> None:
    assert_read_as_written(api, version, *data.draw(messages(api, version)))


@pytest.mark.parametrize("version", range(5))
def test_versions_of_apis_are_read_as_written_in_every_version(version: int) -> None:
    keys = [{"api_key": 18, "min_version": 0, "max_version": 4}]
    frame = b"".join(response_frame(API_VERSIONS, version, 1, {"api_keys": keys}))
    assert read_response(API_VERSIONS, version, frame[4:])[1]["api_keys"] == keys


@pytest.mark.parametrize("version", range(14))
def test_metadata_are_read_as_written_in_every_version(version: int) -> None:
    partition = {"partition_index": 2, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    topic = {"name": "orders", "topic_id": uuid.UUID(int=9), "partitions": [partition]}
    value = {"brokers": [{"node_id": 1, "host": "h", "port": 9092}], "topics": [topic]}
    frame = b"".join(response_frame(METADATA, version, 1, value))
    read = read_response(METADATA, version, frame[4:])[1]
    (found,) = read["topics"]
    assert found["name"] == "orders"
    assert found["partitions"][0]["replica_nodes"] == [1]
    assert found["topic_id"] == uuid.UUID(int=9 if version >= 10 else 0)
    assert found["topic_authorized_operations"] == NOT_REQUESTED


#: The head of a tag of pages: 10000 to 10003, each as a number of seven bits a byte, the lowest first.
_LIMIT, _CURSOR, _NEXT, _TOPIC_ID = (bytes([0x90 + number, 0x4E]) for number in range(4))
#: What a cursor of each API is on the wire, its own tags last.
_ON_THE_WIRE: dict[tuple[Api, int], tuple[dict[str, object], bytes]] = {
    (METADATA, 13): ({"topic_name": "t", "partition_index": 258}, b"\x02t\0\0\1\2"),
    (LIST_OFFSETS, 6): ({"topic_name": "t", "partition_index": 258}, b"\x02t\0\0\1\2"),
    (LIST_PARTITION_REASSIGNMENTS, 0): ({"topic_name": "t", "partition_index": 258}, b"\x02t\0\0\1\2"),
    (DESCRIBE_LOG_DIRS, 2): (
        {"topic_name": "t", "partition_index": 258, "log_dir": "/d"},
        b"\x02t\0\0\1\2\x03/d",
    ),
    (OFFSET_FETCH, 10): (
        {"group_id": "g", "topic_name": "t", "partition_index": 258},
        b"\x02g\x02t\0\0\1\2",
    ),
    (DESCRIBE_PRODUCERS, 0): (
        {"topic_name": "t", "partition_index": 258, "producer_id": 772},
        b"\x02t\0\0\1\2\0\0\0\0\0\0\3\4",
    ),
    (LIST_TRANSACTIONS, 0): ({"transactional_id": "x", "producer_id": 772}, b"\x02x\0\0\0\0\0\0\3\4"),
    (DESCRIBE_TRANSACTIONS, 0): ({"transactional_id": "x", "producer_id": 772}, b"\x02x\0\0\0\0\0\0\3\4"),
    (LIST_GROUPS, 3): ({"group_id": "g"}, b"\x02g"),
    (DESCRIBE_GROUPS, 5): ({"group_id": "g", "member_id": "m"}, b"\x02g\x02m"),
    (CONSUMER_GROUP_DESCRIBE, 0): ({"group_id": "g", "member_id": "m"}, b"\x02g\x02m"),
    (DESCRIBE_ACLS, 2): ({"resource_name": "r", "resource_type": 2}, b"\x02r\2"),
    (DESCRIBE_CONFIGS, 4): ({"resource_name": "r", "resource_type": 2}, b"\x02r\2"),
}


@pytest.mark.parametrize(("api", "version"), _ON_THE_WIRE, ids=lambda each: getattr(each, "name", str(each)))
def test_pages_are_tags_of_the_bytes_that_the_kip_and_the_docs_say(api: Api, version: int) -> None:
    cursor, data = _ON_THE_WIRE[api, version]

    def written(direction: Direction, **page: object) -> bytes:
        writer = Writer()
        getattr(api, f"write_{direction}")(writer, getattr(api, direction).defaults() | page, version)
        return writer.joined()

    def sized(tag: bytes, value: bytes) -> bytes:
        return tag + bytes([len(value)]) + value

    topic_id, none = uuid.UUID(int=2**127 + 9), {"topic_id": ZERO_ID} if "topic_name" in cursor else {}
    kinds = [(cursor, data + b"\0")]
    if "topic_name" in cursor:
        kinds.append((cursor | {"topic_id": topic_id}, data + b"\1" + sized(_TOPIC_ID, topic_id.bytes)))
    for sent, wire in kinds:
        plain = written("request")
        assert plain.endswith(b"\0")  # no tags: what is absent is null
        page = written("request", response_pagination_limit=7, cursor=sent)
        assert page == plain[:-1] + b"\2" + sized(_LIMIT, b"\0\0\0\7") + sized(_CURSOR, wire)
        read = api.read_request(Reader(page), version)
        assert (read["response_pagination_limit"], read["cursor"]) == (7, {**none, **sent})
        plain = written("response")
        assert written("response", next_cursor=sent) == plain[:-1] + b"\1" + sized(_NEXT, wire)
