"""The supported APIs: Kafka's own, which are generated, and ListTopics."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker_core.wire.kafka.api import NEVER, Api
from broker_core.wire.kafka.api_tables import KAFKA_APIS
from broker_core.wire.kafka.fields import BOOLEAN, INT16, STRING, Array, Field, Struct, Versions

__all__ = ["APIS", "LIST_TOPICS", "NOT_REQUESTED"]

#: The authorized operations in an answer to a request that did not ask for them.
NOT_REQUESTED: Final = -(2**31)

#: The names of topics and nothing else, by KIP-142; Kafka itself never had it.
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

#: The supported APIs by key.
APIS: Final[Mapping[int, Api]] = MappingProxyType({api.key: api for api in (*KAFKA_APIS, LIST_TOPICS)})
