"""DescribeCluster: the one node, which is the controller, and the id of the cluster."""

from __future__ import annotations

from typing import Final

from broker_core.servers.kafka.apis.metadata import cluster_operations
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.wire.kafka import DESCRIBE_CLUSTER, ErrorCode, Fields

__all__ = ["DESCRIBE_CLUSTER_ROW"]

#: Types of endpoints: of brokers, and of controllers.
_BROKER: Final = 1
_CONTROLLER: Final = 2


def _describe(call: KafkaCall) -> Fields:
    kind = call.body["endpoint_type"]
    if kind == _CONTROLLER:
        return {
            "error_code": ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "error_message": "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        }
    if kind != _BROKER:
        return {
            "error_code": ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            "error_message": f"Unsupported endpoint type {kind}",
        }
    node = call.node
    fields: Fields = {
        "cluster_id": call.services.cluster_id,
        "controller_id": node.node_id,
        "brokers": [{"broker_id": node.node_id, "host": node.host, "port": node.port}],
    }
    if call.body["include_cluster_authorized_operations"]:
        fields["cluster_authorized_operations"] = cluster_operations(call)
    return fields


DESCRIBE_CLUSTER_ROW: Final = HandlerRow(DESCRIBE_CLUSTER, _describe)
