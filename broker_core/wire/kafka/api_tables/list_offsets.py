"""ListOffsets (key 2): offsets of partitions by time."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import INT8, INT16, INT32, INT64, STRING, Array, Field, Struct, Versions

__all__ = ["LIST_OFFSETS"]

LIST_OFFSETS: Final = Api(
    2,
    "ListOffsets",
    Versions(1, 11),
    flexible=6,
    request=Struct(
        Field("replica_id", INT32, default=-1),
        Field("isolation_level", INT8, "2+"),
        Field(
            "topics",
            Array(
                Struct(
                    Field("name", STRING),
                    Field(
                        "partitions",
                        Array(
                            Struct(
                                Field("partition_index", INT32),
                                Field("current_leader_epoch", INT32, "4+", default=-1),
                                Field("timestamp", INT64),
                            )
                        ),
                    ),
                )
            ),
        ),
        Field("timeout_ms", INT32, "10+"),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32, "2+"),
        Field(
            "topics",
            Array(
                Struct(
                    Field("name", STRING),
                    Field(
                        "partitions",
                        Array(
                            Struct(
                                Field("partition_index", INT32),
                                Field("error_code", INT16),
                                Field("timestamp", INT64, default=-1),
                                Field("offset", INT64, default=-1),
                                Field("leader_epoch", INT32, "4+", default=-1),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
)
