"""ListTopics (key 20142): the names of topics and nothing else, as KIP-142 has it; Kafka itself never had it."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import NEVER, Api
from broker_core.wire.kafka.fields import BOOLEAN, INT16, STRING, Array, Field, Struct, Versions

__all__ = ["LIST_TOPICS"]

LIST_TOPICS: Final = Api(
    20142,
    "ListTopics",
    Versions(0, 0),
    flexible=NEVER,
    request=Struct(Field("list_internal", BOOLEAN)),
    response=Struct(
        Field("error_code", INT16),
        Field("topics", Array(Struct(Field("name", STRING), Field("internal", BOOLEAN)))),
    ),
)
