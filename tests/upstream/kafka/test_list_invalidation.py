"""What an answer says for sure of the topics that a request changed."""

from __future__ import annotations

import pytest

from broker_core.upstream.kafka.list_invalidation import changed_topics
from broker_core.wire.kafka import (
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    METADATA,
    OFFSET_COMMIT,
    Api,
    Fields,
)


@pytest.mark.parametrize(
    ("api", "body", "answer", "changed"),
    [
        (
            CREATE_TOPICS,
            {"validate_only": False},
            {
                "topics": [
                    {"name": "a", "error_code": 0, "num_partitions": 3},
                    {"name": "b", "error_code": 36, "num_partitions": -1},
                    {"name": "c", "error_code": 0, "num_partitions": -1},
                ]
            },
            {"a": 3, "c": 1},
        ),
        (CREATE_TOPICS, {"validate_only": True}, {"topics": [{"name": "a", "error_code": 0}]}, None),
        (
            CREATE_PARTITIONS,
            {"topics": [{"name": "a", "count": 5}, {"name": "b", "count": 2}], "validate_only": False},
            {"results": [{"name": "b", "error_code": 37}, {"name": "a", "error_code": 0}]},
            {"a": 5},
        ),
        (
            DELETE_TOPICS,
            {},
            {"responses": [{"name": "a", "error_code": 0}, {"name": None, "error_code": 100}]},
            {"a": None},
        ),
        (DELETE_TOPICS, {}, None, {}),
        (CREATE_ACLS, {}, {"results": []}, {}),
        (OFFSET_COMMIT, {}, {"topics": []}, None),
        (METADATA, {}, {"topics": []}, None),
    ],
)
def test_changes(api: Api, body: Fields, answer: Fields | None, changed: object) -> None:
    assert changed_topics(api, body, answer) == changed
