"""Produce (key 0): batches of records for partitions; the records themselves are bytes here."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import (
    BYTES,
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

__all__ = ["PRODUCE"]

PRODUCE: Final = Api(
    0,
    "Produce",
    Versions(3, 13),
    flexible=9,
    request=Struct(
        Field("transactional_id", STRING, nullable="0+", default=None),
        Field("acks", INT16),
        Field("timeout_ms", INT32),
        Field(
            "topic_data",
            Array(
                Struct(
                    Field("name", STRING, "0-12"),
                    Field("topic_id", UUID, "13+"),
                    Field(
                        "partition_data",
                        Array(Struct(Field("index", INT32), Field("records", BYTES, nullable="0+"))),
                    ),
                )
            ),
        ),
    ),
    response=Struct(
        Field(
            "responses",
            Array(
                Struct(
                    Field("name", STRING, "0-12"),
                    Field("topic_id", UUID, "13+"),
                    Field(
                        "partition_responses",
                        Array(
                            Struct(
                                Field("index", INT32),
                                Field("error_code", INT16),
                                Field("base_offset", INT64),
                                Field("log_append_time_ms", INT64, default=-1),
                                Field("log_start_offset", INT64, "5+", default=-1),
                                Field(
                                    "record_errors",
                                    Array(
                                        Struct(
                                            Field("batch_index", INT32),
                                            Field(
                                                "batch_index_error_message",
                                                STRING,
                                                nullable="0+",
                                                default=None,
                                            ),
                                        )
                                    ),
                                    "8+",
                                ),
                                Field("error_message", STRING, "8+", nullable="8+", default=None),
                                Field(
                                    "current_leader",
                                    Struct(
                                        Field("leader_id", INT32, default=-1),
                                        Field("leader_epoch", INT32, default=-1),
                                    ),
                                    "10+",
                                    tag=0,
                                ),
                            )
                        ),
                    ),
                )
            ),
        ),
        Field("throttle_time_ms", INT32),
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
            "10+",
            tag=0,
        ),
    ),
)
