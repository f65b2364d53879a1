"""DeleteTopics (key 20): topics to be deleted, by name, and from version 6 on by name or id (KIP-516)."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import INT16, INT32, STRING, UUID, Array, Field, Struct, Versions

__all__ = ["DELETE_TOPICS"]

DELETE_TOPICS: Final = Api(
    20,
    "DeleteTopics",
    Versions(1, 6),
    flexible=4,
    request=Struct(
        Field(
            "topics",
            Array(Struct(Field("name", STRING, nullable="0+", default=None), Field("topic_id", UUID))),
            "6+",
        ),
        Field("topic_names", Array(STRING), "0-5"),
        Field("timeout_ms", INT32),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field(
            "responses",
            Array(
                Struct(
                    Field("name", STRING, nullable="6+", default=None),
                    Field("topic_id", UUID, "6+"),
                    Field("error_code", INT16),
                    Field("error_message", STRING, "5+", nullable="5+", default=None),
                )
            ),
        ),
    ),
)
