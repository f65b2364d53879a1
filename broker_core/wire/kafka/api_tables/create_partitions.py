"""CreatePartitions (key 37): how many partitions topics shall have."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import BOOLEAN, INT16, INT32, STRING, Array, Field, Struct, Versions

__all__ = ["CREATE_PARTITIONS"]

CREATE_PARTITIONS: Final = Api(
    37,
    "CreatePartitions",
    Versions(0, 3),
    flexible=2,
    request=Struct(
        Field(
            "topics",
            Array(
                Struct(
                    Field("name", STRING),
                    Field("count", INT32),
                    Field("assignments", Array(Struct(Field("broker_ids", Array(INT32)))), nullable="0+"),
                )
            ),
        ),
        Field("timeout_ms", INT32),
        Field("validate_only", BOOLEAN),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field(
            "results",
            Array(
                Struct(
                    Field("name", STRING),
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable="0+", default=None),
                )
            ),
        ),
    ),
)
