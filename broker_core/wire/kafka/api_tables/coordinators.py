"""FindCoordinator (key 10) and InitProducerId (key 22): the first questions of consumers and of producers."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import INT8, INT16, INT32, INT64, STRING, Array, Field, Struct, Versions

__all__ = ["FIND_COORDINATOR", "INIT_PRODUCER_ID"]

FIND_COORDINATOR: Final = Api(
    10,
    "FindCoordinator",
    Versions(0, 6),
    flexible=3,
    request=Struct(
        Field("key", STRING, "0-3"),
        Field("key_type", INT8, "1+"),
        Field("coordinator_keys", Array(STRING), "4+"),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32, "1+"),
        Field("error_code", INT16, "0-3"),
        Field("error_message", STRING, "1-3", nullable="1-3", default=None),
        Field("node_id", INT32, "0-3"),
        Field("host", STRING, "0-3"),
        Field("port", INT32, "0-3"),
        Field(
            "coordinators",
            Array(
                Struct(
                    Field("key", STRING),
                    Field("node_id", INT32),
                    Field("host", STRING),
                    Field("port", INT32),
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable="0+", default=None),
                )
            ),
            "4+",
        ),
    ),
)

INIT_PRODUCER_ID: Final = Api(
    22,
    "InitProducerId",
    Versions(0, 5),
    flexible=2,
    request=Struct(
        Field("transactional_id", STRING, nullable="0+", default=None),
        Field("transaction_timeout_ms", INT32),
        Field("producer_id", INT64, "3+", default=-1),
        Field("producer_epoch", INT16, "3+", default=-1),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field("error_code", INT16),
        Field("producer_id", INT64, default=-1),
        Field("producer_epoch", INT16),
    ),
)
