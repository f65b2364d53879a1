"""ListPartitionReassignments: one node has all partitions, and none is ever moved."""

from __future__ import annotations

from typing import Final

from broker_core.kafka.acls import CLUSTER_NAME, Operation, ResourceType
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.wire.kafka import LIST_PARTITION_REASSIGNMENTS, MESSAGES, ErrorCode, Fields

__all__ = ["REASSIGNMENTS_ROW"]


def _list(call: KafkaCall) -> Fields:
    if not call.services.authorizer.allows(call, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return {"error_code": error, "error_message": MESSAGES[error]}
    return {"topics": []}


REASSIGNMENTS_ROW: Final = HandlerRow(LIST_PARTITION_REASSIGNMENTS, _list)
