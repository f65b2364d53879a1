from __future__ import annotations

from broker_core.client.kafka import GroupDescription, OffsetAndMetadata, TopicPartition


def test_what_is_known_of_groups_has_defaults_for_what_is_not() -> None:
    assert GroupDescription("g", "Dead", "", "").members == ()
    assert OffsetAndMetadata(TopicPartition("a", 1), -1, -1, "").error is None
