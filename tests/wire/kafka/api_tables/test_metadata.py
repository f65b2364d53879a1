from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.wire.kafka import METADATA, NOT_ASKED, Api, read_response, response_frame
from tests.support.kafka_values import EXAMPLES, assert_read_as_written, messages, versions_of


@pytest.mark.parametrize("version", range(14))
def test_an_answer_is_read_as_written_in_every_version(version: int) -> None:
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


@pytest.mark.parametrize(("api", "version"), versions_of(METADATA))
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_messages_are_read_as_written_in_every_version(api: Api, version: int, data: st.DataObject) -> None:
    assert_read_as_written(api, version, *data.draw(messages(api, version)))
