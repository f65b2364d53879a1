"""DescribeConfigs (key 32): the configs of topics and brokers, with where each value comes from."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import BOOLEAN, INT8, INT16, INT32, STRING, Array, Field, Struct, Versions

__all__ = ["DESCRIBED_CONFIG", "DESCRIBED_RESOURCE", "DESCRIBE_CONFIGS"]

#: A config of a resource.
DESCRIBED_CONFIG: Final = Struct(
    Field("name", STRING),
    Field("value", STRING, nullable="0+", default=None),
    Field("read_only", BOOLEAN),
    Field("config_source", INT8, default=-1),
    Field("is_sensitive", BOOLEAN),
    Field(
        "synonyms",
        Array(
            Struct(
                Field("name", STRING),
                Field("value", STRING, nullable="0+", default=None),
                Field("source", INT8),
            )
        ),
    ),
    Field("config_type", INT8, "3+"),
    Field("documentation", STRING, "3+", nullable="0+", default=None),
)
#: A resource with its configs.
DESCRIBED_RESOURCE: Final = Struct(
    Field("error_code", INT16),
    Field("error_message", STRING, nullable="0+", default=None),
    Field("resource_type", INT8),
    Field("resource_name", STRING),
    Field("configs", Array(DESCRIBED_CONFIG)),
)

DESCRIBE_CONFIGS: Final = Api(
    32,
    "DescribeConfigs",
    Versions(1, 4),
    flexible=4,
    request=Struct(
        Field(
            "resources",
            Array(
                Struct(
                    Field("resource_type", INT8),
                    Field("resource_name", STRING),
                    Field("configuration_keys", Array(STRING), nullable="0+"),
                )
            ),
        ),
        Field("include_synonyms", BOOLEAN),
        Field("include_documentation", BOOLEAN, "3+"),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field("results", Array(DESCRIBED_RESOURCE)),
    ),
)
