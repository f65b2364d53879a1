from __future__ import annotations

from broker_core.kafka.acls.bindings import Operation, ResourceType
from broker_core.servers.kafka.callers.authorizer import AllowAll, Authorizer
from broker_core.wire.kafka import METADATA
from tests.support.kafka_calls import call_of


def test_without_acls_all_is_allowed() -> None:
    authorizer: Authorizer = AllowAll()
    call = call_of(METADATA, 12)
    assert not authorizer.enabled
    assert authorizer.allows(call, Operation.DELETE, ResourceType.TOPIC, "orders")
    assert (authorizer.topic_operations(call, "orders"), authorizer.cluster_operations(call)) == (3576, 8096)
