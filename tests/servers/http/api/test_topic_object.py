from __future__ import annotations

import uuid
from datetime import UTC, datetime

from broker_core.catalog import CatalogVersion, ListedNames, TopicRecord
from broker_core.names import TopicName
from broker_core.servers.http.api.json_object import schema_of
from broker_core.servers.http.api.topic_object import ShownTopic, TopicObject


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
    shown = TopicObject.of(topic, CatalogVersion("file", 7, "stamp")).content()
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
    schema = schema_of(TopicObject)
    assert list(shown) == schema["required"] == list(schema["properties"])


def test_what_is_not_known_of_a_topic_is_null() -> None:
    written, shown = schema_of(TopicObject)["properties"], schema_of(ShownTopic)["properties"]
    assert list(written) == list(shown)
    differ = {name for name in written if written[name] != shown[name]}
    assert differ == {"topic_id", "properties", "configs", "created", "version"}
    assert all(shown[name] == written[name] | {"type": [written[name]["type"], "null"]} for name in differ)
