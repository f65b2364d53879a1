from __future__ import annotations

from broker_core.servers.kafka.apis.cluster import DESCRIBE_CLUSTER_ROW
from broker_core.wire.kafka import DESCRIBE_CLUSTER, Fields
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_calls import Nobody, answer_of, call_of, services_of


def ask(version: int, body: Fields | None = None, authorizer: AllowAll | None = None) -> Fields:
    services = services_of(authorizer=authorizer or AllowAll())
    return answer_of(DESCRIBE_CLUSTER_ROW, call_of(DESCRIBE_CLUSTER, version, body, services=services))


def test_the_one_node_is_the_controller() -> None:
    answer = ask(2)
    assert answer["brokers"] == [{"broker_id": 1, "host": "127.0.0.1", "port": 9092}]
    assert (answer["controller_id"], answer["cluster_id"]) == (1, "cluster")
    assert "cluster_authorized_operations" not in answer


def test_the_operations_are_told_to_whom_may_describe_the_cluster() -> None:
    asked = {"include_cluster_authorized_operations": True}
    assert ask(2, asked)["cluster_authorized_operations"] == 8096
    assert ask(2, asked, Nobody())["cluster_authorized_operations"] == 0


def test_other_endpoints_are_not_here() -> None:
    assert [ask(1, {"endpoint_type": kind}).get("error_code", 0) for kind in (1, 2, 9)] == [0, 114, 115]
