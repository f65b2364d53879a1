from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.wire.kafka import (
    APIS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_TOPIC_PARTITIONS,
    METADATA,
    SASL_AUTHENTICATE,
    Encoded,
    fault_of,
    request_frame,
)
from broker_core.wire.kafka.fields import FLOAT64, UINT16, Field, Struct


def topic(**fields: Any) -> dict[str, Any]:
    return {"topics": [{"name": "a"}, fields]}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (topic(name=5), "topics[1].name: expected text, not int 5"),
        (topic(name=b"a"), "topics[1].name: expected text, not bytes b'a'"),
        (topic(name="x" * 32_768), "topics[1].name: 32768 bytes of text, at most 32767: 'xxxx"),
        (topic(name="ü" * 16_384), "topics[1].name: 32768 bytes of text, at most 32767: '\\\\xfc"),
        (topic(name="\ud800"), "topics[1].name: '\\\\ud800' is not valid Unicode"),
        (topic(num_partitions="3"), "topics[1].num_partitions: expected a whole number, not str '3'"),
        (topic(num_partitions=1.0), "topics[1].num_partitions: expected a whole number, not float 1.0"),
        (topic(num_partitions=True), "topics[1].num_partitions: expected a whole number, not bool True"),
        (topic(num_partitions=2**31), "topics[1].num_partitions: 2147483648 is not between -2147483648 and"),
        (topic(configs=[{"name": "a", "value": 1}]), "topics[1].configs[0].value: expected text, not int 1"),
        (topic(configs={"a": "b"}), "topics[1].configs: expected a list, not dict {'a': 'b'}"),
        (topic(configs="ab"), "topics[1].configs: expected a list, not str 'ab'"),
        ({"topics": ["a"]}, "topics[0]: expected fields, not str 'a'"),
        ({"topics": [None]}, "topics[0]: null cannot be sent"),
        (
            topic(assignments=[{"partition_index": 0, "broker_ids": [1, "2"]}]),
            "topics[1].assignments[0].broker_ids[1]: expected a whole number, not str '2'",
        ),
        ({"validate_only": 1}, "validate_only: expected True or False, not int 1"),
    ],
)
def test_a_value_that_cannot_be_sent(value: dict[str, Any], fault: str) -> None:
    found = fault_of(CREATE_TOPICS.request, value, 7)
    assert found is not None
    assert found.startswith(fault.replace("\\\\", "\\"))
    assert len(found) < 200


def test_other_kinds() -> None:
    assert (
        fault_of(SASL_AUTHENTICATE.request, {"auth_bytes": "a"}, 2)
        == "auth_bytes: expected bytes, not str 'a'"
    )
    found = fault_of(METADATA.request, {"topics": [{"topic_id": "a", "name": None}]}, 12)
    assert found == "topics[0].topic_id: expected a uuid.UUID, not str 'a'"
    struct = Struct(Field("port", UINT16), Field("rate", FLOAT64))
    assert fault_of(struct, {"port": -1}, 0) == "port: -1 is not between 0 and 65535"
    assert fault_of(struct, {"rate": "1"}, 0) == "rate: expected a number, not str '1'"
    assert fault_of(struct, {"port": 65535, "rate": 1}, 0) is None


@pytest.mark.parametrize(
    "value",
    [
        {},
        topic(name="x" * 32_767, num_partitions=-1, configs=[{"name": "a", "value": None}]),
        topic(name="ü" * 16_383),
        {"topics": Encoded(0, ()), "timeout_ms": 2**31 - 1},
        {"topics": ({"name": "a"},)},
    ],
)
def test_what_can_be_sent(value: dict[str, Any]) -> None:
    assert fault_of(CREATE_TOPICS.request, value, 7) is None
    cursor = {"topics": [], "cursor": {"topic_name": 5, "partition_index": 0}}
    assert fault_of(DESCRIBE_TOPIC_PARTITIONS.request, cursor | {"cursor": None}, 0) is None
    assert (
        fault_of(DESCRIBE_TOPIC_PARTITIONS.request, cursor, 0)
        == "cursor.topic_name: expected text, not int 5"
    )
    assert fault_of(METADATA.request, {"topics": [{"topic_id": uuid.uuid4(), "name": None}]}, 12) is None


def test_fields_that_a_version_lacks_are_not_checked() -> None:
    value = {"topics": [{"name": None, "topic_id": uuid.uuid4()}], "topic_names": [None]}
    assert fault_of(DELETE_TOPICS.request, value, 6) is None
    assert fault_of(DELETE_TOPICS.request, value, 5) == "topic_names[0]: null cannot be sent"
    lacking = {"topics": [{"name": "a", "topic_id": 5}]}
    assert fault_of(METADATA.request, lacking, 9) is None
    assert fault_of(METADATA.request, lacking, 10) is not None


def test_the_defaults_of_each_api_can_be_sent() -> None:
    for api in APIS.values():
        for version in range(api.versions.first, api.versions.last + 1):
            assert fault_of(api.request, api.request.defaults(), version) is None


_ANY = st.recursive(
    st.booleans() | st.integers() | st.text(st.characters(), max_size=5) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries({}, optional={"name": inner, "num_partitions": inner, "configs": inner})
    ),
    max_leaves=8,
)


@given(_ANY, _ANY)
def test_what_has_no_fault_is_encoded(topics: Any, timeout: Any) -> None:
    value = {"topics": topics, "timeout_ms": timeout}
    if fault_of(CREATE_TOPICS.request, value, 7) is None:
        assert request_frame(CREATE_TOPICS, 7, 1, None, value)
