"""Fetch (key 1): records of partitions from an offset on; the records themselves are bytes here."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import (
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Array,
    Field,
    Struct,
    Versions,
)

__all__ = ["FETCH"]

FETCH: Final = Api(
    1,
    "Fetch",
    Versions(4, 18),
    flexible=12,
    request=Struct(
        Field("cluster_id", STRING, "12+", nullable="12+", default=None, tag=0),
        Field("replica_id", INT32, "0-14", default=-1),
        Field(
            "replica_state",
            Struct(Field("replica_id", INT32, default=-1), Field("replica_epoch", INT64, default=-1)),
            "15+",
            tag=1,
        ),
        Field("max_wait_ms", INT32),
        Field("min_bytes", INT32),
        Field("max_bytes", INT32, default=2**31 - 1),
        Field("isolation_level", INT8),
        Field("session_id", INT32, "7+"),
        Field("session_epoch", INT32, "7+", default=-1),
        Field(
            "topics",
            Array(
                Struct(
                    Field("topic", STRING, "0-12"),
                    Field("topic_id", UUID, "13+"),
                    Field(
                        "partitions",
                        Array(
                            Struct(
                                Field("partition", INT32),
                                Field("current_leader_epoch", INT32, "9+", default=-1),
                                Field("fetch_offset", INT64),
                                Field("last_fetched_epoch", INT32, "12+", default=-1),
                                Field("log_start_offset", INT64, "5+", default=-1),
                                Field("partition_max_bytes", INT32),
                                Field("replica_directory_id", UUID, "17+", tag=0),
                                Field("high_watermark", INT64, "18+", default=2**63 - 1, tag=1),
                            )
                        ),
                    ),
                )
            ),
        ),
        Field(
            "forgotten_topics_data",
            Array(
                Struct(
                    Field("topic", STRING, "0-12"),
                    Field("topic_id", UUID, "13+"),
                    Field("partitions", Array(INT32)),
                )
            ),
            "7+",
        ),
        Field("rack_id", STRING, "11+"),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field("error_code", INT16, "7+"),
        Field("session_id", INT32, "7+"),
        Field(
            "responses",
            Array(
                Struct(
                    Field("topic", STRING, "0-12"),
                    Field("topic_id", UUID, "13+"),
                    Field(
                        "partitions",
                        Array(
                            Struct(
                                Field("partition_index", INT32),
                                Field("error_code", INT16),
                                Field("high_watermark", INT64),
                                Field("last_stable_offset", INT64, default=-1),
                                Field("log_start_offset", INT64, "5+", default=-1),
                                Field(
                                    "diverging_epoch",
                                    Struct(
                                        Field("epoch", INT32, default=-1),
                                        Field("end_offset", INT64, default=-1),
                                    ),
                                    "12+",
                                    tag=0,
                                ),
                                Field(
                                    "current_leader",
                                    Struct(
                                        Field("leader_id", INT32, default=-1),
                                        Field("leader_epoch", INT32, default=-1),
                                    ),
                                    "12+",
                                    tag=1,
                                ),
                                Field(
                                    "snapshot_id",
                                    Struct(
                                        Field("end_offset", INT64, default=-1),
                                        Field("epoch", INT32, default=-1),
                                    ),
                                    "12+",
                                    tag=2,
                                ),
                                Field(
                                    "aborted_transactions",
                                    Array(Struct(Field("producer_id", INT64), Field("first_offset", INT64))),
                                    nullable="0+",
                                ),
                                Field("preferred_read_replica", INT32, "11+", default=-1),
                                Field("records", BYTES, nullable="0+"),
                            )
                        ),
                    ),
                )
            ),
        ),
        Field(
            "node_endpoints",
            Array(
                Struct(
                    Field("node_id", INT32),
                    Field("host", STRING),
                    Field("port", INT32),
                    Field("rack", STRING, nullable="0+", default=None),
                )
            ),
            "16+",
            tag=0,
        ),
    ),
)
