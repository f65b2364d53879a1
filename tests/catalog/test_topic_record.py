from __future__ import annotations

import uuid
from datetime import UTC, datetime

from broker_core.catalog.topic_record import TopicRecord
from broker_core.names import TopicName
from broker_core.names.listed_names import ListedNames

NAME = TopicName.parse("persistent://a/b/orders")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_a_record_names_all_that_is_listed() -> None:
    record = TopicRecord(NAME, uuid.uuid4(), ListedNames.parse("*,0-1,5"), {}, NOW)
    assert list(record.names) == [
        "persistent://a/b/orders",
        "persistent://a/b/orders-partition-0",
        "persistent://a/b/orders-partition-1",
        "persistent://a/b/orders-partition-5",
    ]
    assert record.partitions == 6
