"""ListConfigResources (key 74): the names of what has configs; version 0 lists those of client metrics alone."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import INT8, INT16, INT32, STRING, Array, Field, Struct, Versions

__all__ = ["LIST_CONFIG_RESOURCES"]

LIST_CONFIG_RESOURCES: Final = Api(
    74,
    "ListConfigResources",
    Versions(0, 1),
    flexible=0,
    request=Struct(Field("resource_types", Array(INT8), "1+")),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field("error_code", INT16),
        Field(
            "config_resources",
            Array(Struct(Field("resource_name", STRING), Field("resource_type", INT8, "1+", default=16))),
        ),
    ),
)
