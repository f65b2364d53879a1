from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.wire.kafka import (
    API_VERSIONS,
    APIS,
    LIST_TOPICS,
    METADATA,
    NOT_ASKED,
    Api,
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
    assert found["topic_authorized_operations"] == NOT_ASKED
