"""Rows that are put together of what is alike are those that are written field by field, in every version."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from broker_core.servers.kafka.topics.created_rows import CreatedRows, encoded_rows
from broker_core.servers.kafka.topics.encoded_configs import EncodedConfigs
from broker_core.wire.kafka import CREATE_TOPICS, ErrorCode, Fields

VERSIONS = range(CREATE_TOPICS.versions.first, CREATE_TOPICS.versions.last + 1)
LONG = "x" * 249
IDS = [uuid.uuid4() for _ in range(4)]


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_are_those_that_are_written_field_by_field(version: int) -> None:
    configs = EncodedConfigs({})
    one: Fields = {"num_partitions": 1, "replication_factor": 1, "configs": configs.created({})}
    many: Fields = {
        "num_partitions": 300,
        "replication_factor": 1,
        "configs": configs.created({"retention.ms": "1"}),
    }
    denied: Fields = {"topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    refused: Fields = {"name": "bad", "error_code": ErrorCode.TOPIC_ALREADY_EXISTS, "error_message": "there"}
    asked: list[tuple[str, Fields, tuple[Any, ...] | None]] = [
        ("a", one, (1, 1)),
        (LONG, one, (1, 1)),
        ("c", many, None),
        ("d", denied, ()),
    ]
    if version < 5:  # there are no further fields
        asked = [(name, {}, ()) for name, _, _ in asked]
    created = CreatedRows(version)
    rows = [
        created.row(name, topic_id, rest, alike)
        for (name, rest, alike), topic_id in zip(asked, IDS, strict=True)
    ]
    expected = [
        {"name": name, "topic_id": topic_id} | rest
        for (name, rest, _), topic_id in zip(asked, IDS, strict=True)
    ]
    encoded = encoded_rows([rows[0], refused, *rows[1:]], version)
    plain = CREATE_TOPICS.response_elements("topics", [expected[0], refused, *expected[1:]], version)
    assert (encoded.count, encoded.error) == (5, ErrorCode.TOPIC_ALREADY_EXISTS)
    assert b"".join(encoded.pieces) == b"".join(plain.pieces)
    assert encoded_rows(rows, version).error == 0
