"""ListConfigResources: the names of resources with configs.

Version 0 asks for client metrics alone, of which there are none here.
As in Kafka, ACLs decide about the cluster alone, and a client that may see its configs gets all names; names that rules
and plugins hide are hidden here too.
"""

from __future__ import annotations

from typing import Final

from broker_core.errors import ListingFailed
from broker_core.kafka.acls import CLUSTER_NAME, Operation, ResourceType
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.servers.kafka.requests.config_resource_types import ConfigResourceType
from broker_core.servers.kafka.row_error import code_of
from broker_core.wire.kafka import LIST_CONFIG_RESOURCES, Encoded, ErrorCode, Fields
from broker_core.wire.kafka.topic_fragments import RESOURCE_FAMILY, config_resource

__all__ = ["LIST_CONFIG_RESOURCES_ROW"]

_OF_NODE: Final = (ConfigResourceType.BROKER_LOGGER, ConfigResourceType.BROKER)
_KNOWN: Final = frozenset(ConfigResourceType)


async def _list(call: KafkaCall) -> Fields:
    requested = set(call.body["resource_types"]) or (_KNOWN if call.version else set())
    authorizer = call.services.authorizer
    if not authorizer.allows(call, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    if not requested <= _KNOWN:
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION}
    name = str(call.node.node_id)
    nodes = [config_resource(name, kind) for kind in _OF_NODE if kind in requested]
    topics = Encoded(0, ())
    if ConfigResourceType.TOPIC in requested:
        try:
            topics = await call.services.topics.all_encoded(call, RESOURCE_FAMILY, acls=False)
        except ListingFailed as failure:
            return {"error_code": code_of(failure)}
    return {"config_resources": Encoded(len(nodes) + topics.count, [*nodes, *topics.pieces])}


LIST_CONFIG_RESOURCES_ROW: Final = HandlerRow(LIST_CONFIG_RESOURCES, _list)
