from __future__ import annotations

import uuid
from datetime import UTC, datetime

from broker_core.catalog import TopicRecord
from broker_core.change_log import ListedNames
from broker_core.cli.described_topics import described
from broker_core.names import TopicName


def test_all_that_is_known_is_shown() -> None:
    name = TopicName.parse("persistent://a/b/x")
    created = datetime(2026, 11, 22, tzinfo=UTC)
    record = TopicRecord(
        name, uuid.UUID(int=1), ListedNames.partitioned(2), {"k": "v"}, created, {"retention.ms": "1"}, 3
    )
    assert described(record) == {
        "name": "persistent://a/b/x",
        "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "partitions": 2,
        "properties": {"k": "v"},
        "configs": {"retention.ms": "1"},
        "replication": 3,
        "created": "2026-11-22T00:00:00.000+00:00",
        "names": ["persistent://a/b/x-partition-0", "persistent://a/b/x-partition-1"],
    }
