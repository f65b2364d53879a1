"""DescribeTopicPartitions (key 75): topics with their partitions in pages, which end with a cursor (KIP-966)."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.api_tables.metadata import NOT_ASKED
from broker_core.wire.kafka.fields import BOOLEAN, INT16, INT32, STRING, UUID, Array, Field, Struct, Versions

__all__ = ["DESCRIBE_TOPIC_PARTITIONS"]

DESCRIBE_TOPIC_PARTITIONS: Final = Api(
    75,
    "DescribeTopicPartitions",
    Versions(0, 0),
    flexible=0,
    request=Struct(
        Field("topics", Array(Struct(Field("name", STRING)))),
        Field("response_partition_limit", INT32, default=2000),
        Field(
            "cursor",
            Struct(Field("topic_name", STRING), Field("partition_index", INT32)),
            nullable="0+",
            default=None,
        ),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field(
            "topics",
            Array(
                Struct(
                    Field("error_code", INT16),
                    Field("name", STRING, nullable="0+", default=None),
                    Field("topic_id", UUID),
                    Field("is_internal", BOOLEAN),
                    Field(
                        "partitions",
                        Array(
                            Struct(
                                Field("error_code", INT16),
                                Field("partition_index", INT32),
                                Field("leader_id", INT32),
                                Field("leader_epoch", INT32, default=-1),
                                Field("replica_nodes", Array(INT32)),
                                Field("isr_nodes", Array(INT32)),
                                Field("eligible_leader_replicas", Array(INT32), nullable="0+", default=None),
                                Field("last_known_elr", Array(INT32), nullable="0+", default=None),
                                Field("offline_replicas", Array(INT32)),
                            )
                        ),
                    ),
                    Field("topic_authorized_operations", INT32, default=NOT_ASKED),
                )
            ),
        ),
        Field(
            "next_cursor",
            Struct(Field("topic_name", STRING), Field("partition_index", INT32)),
            nullable="0+",
            default=None,
        ),
    ),
)
