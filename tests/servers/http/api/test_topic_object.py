from __future__ import annotations

import uuid
from datetime import UTC, datetime

from broker_core.catalog import CatalogVersion, ListedNames, TopicRecord
from broker_core.names import TopicName
from broker_core.servers.http.api.topic_object import TOPIC_SCHEMA, topic_object


def test_a_topic_as_an_object() -> None:
    topic = TopicRecord(
        TopicName.parse("persistent://a/b/x"),
        uuid.UUID(int=1),
        ListedNames.parse("*,0-1"),
        {"k": "v"},
        datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC),
        {"retention.ms": "5"},
        3,
    )
    shown = topic_object(topic, CatalogVersion("file", 7, "stamp"))
    assert shown == {
        "name": "persistent://a/b/x",
        "partitions": 2,
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "properties": {"k": "v"},
        "configs": {"retention.ms": "5"},
        "replication": 3,
        "created": "2026-01-02T03:04:05.678+00:00",
        "version": "file:7.stamp",
    }
    assert list(shown) == TOPIC_SCHEMA["required"] == list(TOPIC_SCHEMA["properties"])
