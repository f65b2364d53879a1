"""CreateTopics (key 19): topics to be made, and, from version 5 on, the configs of each that was made (KIP-525)."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    STRING,
    UUID,
    Array,
    Field,
    Struct,
    Versions,
)

__all__ = ["CREATED_CONFIG", "CREATE_TOPICS"]

#: A config of a topic that was made.
CREATED_CONFIG: Final = Struct(
    Field("name", STRING),
    Field("value", STRING, nullable="0+", default=None),
    Field("read_only", BOOLEAN),
    Field("config_source", INT8, default=-1),
    Field("is_sensitive", BOOLEAN),
)

CREATE_TOPICS: Final = Api(
    19,
    "CreateTopics",
    Versions(2, 7),
    flexible=5,
    request=Struct(
        Field(
            "topics",
            Array(
                Struct(
                    Field("name", STRING),
                    Field("num_partitions", INT32),
                    Field("replication_factor", INT16),
                    Field(
                        "assignments",
                        Array(Struct(Field("partition_index", INT32), Field("broker_ids", Array(INT32)))),
                    ),
                    Field(
                        "configs",
                        Array(
                            Struct(Field("name", STRING), Field("value", STRING, nullable="0+", default=None))
                        ),
                    ),
                )
            ),
        ),
        Field("timeout_ms", INT32, default=60000),
        Field("validate_only", BOOLEAN),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field(
            "topics",
            Array(
                Struct(
                    Field("name", STRING),
                    Field("topic_id", UUID, "7+"),
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable="0+", default=None),
                    Field("topic_config_error_code", INT16, "5+", tag=0),
                    Field("num_partitions", INT32, "5+", default=-1),
                    Field("replication_factor", INT16, "5+", default=-1),
                    Field(
                        "configs",
                        Array(CREATED_CONFIG),
                        "5+",
                        nullable="5+",
                    ),
                )
            ),
        ),
    ),
)
