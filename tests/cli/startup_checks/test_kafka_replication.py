from __future__ import annotations

import pytest

from broker_core.cli.startup_checks.kafka_replication import kafka_replication_checks
from tests.cli.startup_checks.findings import levels, settings, text


def test_more_replicas_than_nodes_are_told() -> None:
    found = list(kafka_replication_checks(settings(kafka={"replication_factor": 3})))
    assert levels(found) == {"kafka.replication_factor": "warning"}
    assert "3 replicas need as many nodes" in text(found, "kafka.replication_factor")


@pytest.mark.parametrize("kafka", [None, {}, {"replication_factor": 3, "replication": "record"}])
def test_nothing_is_said_where_topics_can_be_made(kafka: dict[str, object] | None) -> None:
    assert list(kafka_replication_checks(settings(**({} if kafka is None else {"kafka": kafka})))) == []
