"""System topics, which brokers hide from listings."""

from __future__ import annotations

import pytest

from broker_core.names import TopicName
from broker_core.names.system_topics import is_system_topic


@pytest.mark.parametrize(
    ("name", "system"),
    [
        ("persistent://public/default/__change_events", True),
        ("persistent://public/default/__change_events-partition-0", True),
        ("persistent://public/default/__transaction_buffer_snapshot", True),
        ("persistent://public/default/__transaction_buffer_snapshot_segments-partition-7", True),
        ("persistent://public/default/__transaction_buffer_snapshot_indexes", True),
        ("persistent://public/default/orders-sub__transaction_pending_ack", True),
        ("persistent://public/default/orders-sub__transaction_pending_ack-partition-3", True),
        ("persistent://public/default/__transaction_pending_ack", True),
        ("non-persistent://public/default/__change_events", True),
        ("persistent://pulsar/system/transaction_coordinator_assign-partition-0", True),
        ("persistent://pulsar/system/transaction_coordinator_assigned", True),
        ("persistent://pulsar/system/__transaction_log_0", True),
        ("persistent://public/default/not_really__change_events", False),
        ("persistent://public/default/__change_events-diff-suffix", False),
        ("persistent://public/default/__change_events-partition-00", False),
        ("persistent://public/default/__transaction_log_0", False),
        ("persistent://public/default/__compaction", False),
        ("non-persistent://pulsar/system/transaction_coordinator_assign", False),
        ("persistent://pulsar/system/__transaction_log", False),
        ("persistent://public/default/x", False),
    ],
)
def test_the_topics_that_brokers_keep_for_themselves(name: str, *, system: bool) -> None:
    topic = TopicName.parse(name)
    assert topic.is_system is system
    assert is_system_topic(topic.domain, topic.namespace, topic.local) is system
