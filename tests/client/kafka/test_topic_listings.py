from __future__ import annotations

import uuid

from broker_core.client.kafka.topic_listings import ListTopicsResult, TopicListing
from broker_core.wire.kafka import ZERO_ID

ID = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")


def test_a_listing_is_a_sequence() -> None:
    listed = ListTopicsResult(["b", "a"], b"\0\1", [ID, ZERO_ID])
    assert list(listed) == [TopicListing("b", ID, False), TopicListing("a", ZERO_ID, True)]
    assert listed[-1].name == "a"
    assert [each.name for each in listed[:1]] == ["b"]
    assert listed.names() == ["b", "a"]


def test_the_id_of_a_topic_that_is_not_there_is_zero() -> None:
    listed = ListTopicsResult(["b"], b"\0", [ID])
    assert listed.topic_ids() == {"b": ID}
    assert (listed.topic_id("b"), listed.topic_id("a")) == (ID, ZERO_ID)


def test_without_ids() -> None:
    listed = ListTopicsResult(["b"], b"\0")
    assert listed[0].topic_id == ZERO_ID
    assert listed.topic_ids() == {}
    assert listed.topic_id("b") == ZERO_ID
