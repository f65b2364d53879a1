"""DescribeLogDirs: one directory without sizes, with the empty logs of the topics that the client may see.

As in Kafka ACLs decide about the cluster alone; topics that rules and plugins hide are hidden here too.
"""

from __future__ import annotations

from typing import Final

from broker_core.errors import ListingFailed
from broker_core.kafka.acls import CLUSTER_NAME, Operation, ResourceType
from broker_core.servers.kafka.pages.page_shapes import LOG_DIR
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.servers.kafka.row_error import code_of
from broker_core.wire.kafka import DESCRIBE_LOG_DIRS, Encoded, ErrorCode, Fields
from broker_core.wire.kafka.topic_fragments import log_dir_family

__all__ = ["LOG_DIRS_ROW"]


async def _describe(call: KafkaCall) -> Fields:
    if not call.services.authorizer.allows(call, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    try:
        topics = await (_all(call) if call.body["topics"] is None else _named(call))
    except ListingFailed as failure:
        return {"error_code": code_of(failure), "results": [_directory([], code_of(failure))]}
    return {"results": [_directory(topics)]}


def _directory(topics: Encoded | list[Fields], error: ErrorCode = ErrorCode.NONE) -> Fields:
    return {"error_code": error, "log_dir": LOG_DIR, "topics": topics}


async def _all(call: KafkaCall) -> Encoded:
    return await call.services.topics.all_encoded(call, log_dir_family(call.version), acls=False)


async def _named(call: KafkaCall) -> list[Fields]:
    """The existing topics and partitions of the request; all of a topic that it names twice, as at Kafka."""
    requested: dict[str, list[int]] = {}
    for row in call.body["topics"]:
        requested.setdefault(row["topic"], []).extend(row["partitions"])
    found = await call.services.named.by_name(call, list(requested), operation=None)
    return [
        {"name": topic.name, "partitions": partitions}
        for topic in found
        if (
            partitions := [
                {"partition_index": number}
                for number in dict.fromkeys(requested[topic.name or ""])
                if 0 <= number < topic.partitions
            ]
        )
    ]


LOG_DIRS_ROW: Final = HandlerRow(DESCRIBE_LOG_DIRS, _describe)
