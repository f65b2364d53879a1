from __future__ import annotations

import pytest

from broker_core.errors import Cause, ListingFailed
from broker_core.servers.kafka.named_topic import NamedTopic, code_of
from broker_core.wire.kafka import ZERO_ID, ErrorCode


@pytest.mark.parametrize(
    ("cause", "code"),
    [(Cause.TIME, 7), (Cause.DENIED, 29), (Cause.CATALOG, -1), (Cause.PLUGIN, -1), (Cause.PERMITS, -1)],
)
def test_a_failure_has_a_code(cause: Cause, code: int) -> None:
    assert code_of(ListingFailed("no", cause=cause)) == code


def test_a_topic_without_more_is_one_that_nobody_knows() -> None:
    topic = NamedTopic("a", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (topic.topic_id, topic.partitions, topic.record) == (ZERO_ID, 0, None)
