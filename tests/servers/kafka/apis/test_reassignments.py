from __future__ import annotations

from broker_core.servers.kafka.apis.reassignments import REASSIGNMENTS_ROW
from broker_core.wire.kafka import LIST_PARTITION_REASSIGNMENTS
from tests.support.kafka_calls import Nobody, answer_of, call_of, services_of


def test_nothing_is_moved() -> None:
    assert answer_of(REASSIGNMENTS_ROW, call_of(LIST_PARTITION_REASSIGNMENTS, 0)) == {"topics": []}


def test_it_takes_the_right_to_describe_the_cluster() -> None:
    call = call_of(LIST_PARTITION_REASSIGNMENTS, 0, services=services_of(authorizer=Nobody()))
    assert answer_of(REASSIGNMENTS_ROW, call) == {
        "error_code": 31,
        "error_message": "Cluster authorization failed.",
    }
