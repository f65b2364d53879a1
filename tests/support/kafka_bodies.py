"""A request of each Kafka API that asks for a right, for tests that look at what is denied."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from broker_core.wire.kafka import ErrorCode

__all__ = ["DENIED", "bodies_about", "codes_in"]

DENIED: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def codes_in(value: Any) -> Iterator[int]:
    """The codes of an answer, and of all of its rows; a topic is created though its configs are not answered."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name.endswith("error_code") and name != "topic_config_error_code":
                yield inner
            yield from codes_in(inner)
    elif isinstance(value, list):
        for each in value:
            yield from codes_in(each)


def bodies_about(name: str) -> dict[str, dict[str, Any]]:
    """By the names of APIs a request in the latest version (OffsetCommit: before 10), about a topic if it takes one."""
    topic = {"name": name}
    entry = {
        "resource_type": 2,
        "resource_name": "x",
        "resource_pattern_type": 3,
        "principal": "User:x",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    acl_filter = {
        "resource_type_filter": 2,
        "resource_name_filter": "none",
        "pattern_type_filter": 3,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    config = {"name": "retention.ms", "value": "1"}
    return {
        "ApiVersions": {"client_software_name": "test", "client_software_version": "1"},
        "DescribeCluster": {"endpoint_type": 1},
        "ListGroups": {},
        "DescribeGroups": {"groups": ["g"]},
        "ConsumerGroupDescribe": {"group_ids": ["g"]},
        "ListTransactions": {},
        "DescribeTransactions": {"transactional_ids": ["t"]},
        "ListPartitionReassignments": {"topics": None},
        "OffsetFetch": {"groups": [{"group_id": "g", "topics": None}]},
        "DescribeLogDirs": {"topics": None},
        "DescribeProducers": {"topics": [topic | {"partition_indexes": [0]}]},
        "ListTopics": {},
        "ListConfigResources": {"resource_types": [2]},
        "Metadata": {"topics": [topic | {"topic_id": uuid.UUID(int=0)}]},
        "DescribeTopicPartitions": {"topics": [topic], "response_partition_limit": 10, "cursor": None},
        "DescribeConfigs": {"resources": [{"resource_type": 2, "resource_name": name}]},
        "ListOffsets": {
            "replica_id": -1,
            "topics": [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
        },
        "CreateTopics": {
            "topics": [{"name": f"{name}-new", "num_partitions": 1, "replication_factor": 1}],
            "validate_only": True,
        },
        "CreatePartitions": {"topics": [topic | {"count": 5}], "validate_only": True, "timeout_ms": 1000},
        "AlterConfigs": {
            "resources": [{"resource_type": 2, "resource_name": name, "configs": [config]}],
            "validate_only": True,
        },
        "IncrementalAlterConfigs": {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": name,
                    "configs": [config | {"config_operation": 0}],
                }
            ],
            "validate_only": True,
        },
        "DescribeAcls": acl_filter,
        "CreateAcls": {"creations": [entry]},
        "DeleteAcls": {"filters": [acl_filter]},
        "DeleteTopics": {"topics": [topic | {"topic_id": uuid.UUID(int=0)}], "timeout_ms": 1000},
        "AlterPartitionReassignments": {
            "topics": [topic | {"partitions": [{"partition_index": 0, "replicas": None}]}]
        },
        "ConsumerGroupHeartbeat": {"group_id": "g", "member_id": "m"},
        "DeleteGroups": {"groups_names": ["g"]},
        "DescribeClientQuotas": {"components": [], "strict": False},
        "DescribeUserScramCredentials": {"users": None},
        "FindCoordinator": {"key_type": 0, "coordinator_keys": ["g"]},
        "JoinGroup": {
            "group_id": "g",
            "session_timeout_ms": 1000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": [],
        },
        "LeaveGroup": {"group_id": "g", "members": [{"member_id": "m"}]},
        "OffsetCommit": {
            "group_id": "g",
            "member_id": "",
            "topics": [topic | {"partitions": [{"partition_index": 0, "committed_offset": 0}]}],
        },
        "OffsetDelete": {"group_id": "g", "topics": [topic | {"partitions": [{"partition_index": 0}]}]},
    }
