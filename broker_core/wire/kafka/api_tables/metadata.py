"""Metadata (key 3): brokers, and topics with their partitions: all of them, or by name, or (from version 12) by id."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import BOOLEAN, INT16, INT32, STRING, UUID, Array, Field, Struct, Versions

__all__ = ["METADATA", "NOT_ASKED"]

#: The authorized operations of an answer to whom did not ask for them.
NOT_ASKED: Final = -(2**31)

_PARTITION: Final = Struct(
    Field("error_code", INT16),
    Field("partition_index", INT32),
    Field("leader_id", INT32),
    Field("leader_epoch", INT32, "7+", default=-1),
    Field("replica_nodes", Array(INT32)),
    Field("isr_nodes", Array(INT32)),
    Field("offline_replicas", Array(INT32), "5+"),
)
METADATA: Final = Api(
    3,
    "Metadata",
    Versions(0, 13),
    flexible=9,
    request=Struct(
        # Of version 0, no topics are all topics; later null is.
        Field(
            "topics",
            Array(Struct(Field("topic_id", UUID, "10+"), Field("name", STRING, nullable="10+"))),
            nullable="1+",
        ),
        Field("allow_auto_topic_creation", BOOLEAN, "4+", default=True),
        Field("include_cluster_authorized_operations", BOOLEAN, "8-10"),
        Field("include_topic_authorized_operations", BOOLEAN, "8+"),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32, "3+"),
        Field(
            "brokers",
            Array(
                Struct(
                    Field("node_id", INT32),
                    Field("host", STRING),
                    Field("port", INT32),
                    Field("rack", STRING, "1+", nullable="1+", default=None),
                )
            ),
        ),
        Field("cluster_id", STRING, "2+", nullable="2+", default=None),
        Field("controller_id", INT32, "1+", default=-1),
        Field(
            "topics",
            Array(
                Struct(
                    Field("error_code", INT16),
                    Field("name", STRING, nullable="12+"),
                    Field("topic_id", UUID, "10+"),
                    Field("is_internal", BOOLEAN, "1+"),
                    Field("partitions", Array(_PARTITION)),
                    Field("topic_authorized_operations", INT32, "8+", default=NOT_ASKED),
                )
            ),
        ),
        Field("cluster_authorized_operations", INT32, "8-10", default=NOT_ASKED),
        Field("error_code", INT16, "13+"),
    ),
)
