from __future__ import annotations

from broker_core.wire.kafka import LIST_CONFIG_RESOURCES, LIST_TOPICS, Encoded, response_frame
from broker_core.wire.kafka.topic_fragments import LISTED_FAMILY, RESOURCE_FAMILY
from tests.support.topic_chunks import chunk_of

TOPICS = {"__consumer_offsets": 50, "a": 1, "b" * 126: 2, "c" * 127: 200, "d" * 249: 1}


def test_the_entries_of_list_topics() -> None:
    rows = [{"name": name, "internal": name == "__consumer_offsets"} for name in TOPICS]
    encoded = Encoded(len(rows), [LISTED_FAMILY.of(chunk_of(TOPICS)).data])
    assert b"".join(response_frame(LIST_TOPICS, 0, 1, {"topics": encoded})) == b"".join(
        response_frame(LIST_TOPICS, 0, 1, {"topics": rows})
    )


def test_the_topics_among_config_resources() -> None:
    rows = [{"resource_name": name, "resource_type": 2} for name in TOPICS]
    encoded = Encoded(len(rows), [RESOURCE_FAMILY.of(chunk_of(TOPICS)).data])
    assert b"".join(response_frame(LIST_CONFIG_RESOURCES, 1, 1, {"config_resources": encoded})) == b"".join(
        response_frame(LIST_CONFIG_RESOURCES, 1, 1, {"config_resources": rows})
    )
