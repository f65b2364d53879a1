"""AlterConfigs (key 33) replaces all configs of a resource; IncrementalAlterConfigs (key 44) changes some."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import BOOLEAN, INT8, INT16, INT32, STRING, Array, Field, Struct, Versions

__all__ = ["ALTER_CONFIGS", "INCREMENTAL_ALTER_CONFIGS"]

ALTER_CONFIGS: Final = Api(
    33,
    "AlterConfigs",
    Versions(0, 2),
    flexible=2,
    request=Struct(
        Field(
            "resources",
            Array(
                Struct(
                    Field("resource_type", INT8),
                    Field("resource_name", STRING),
                    Field(
                        "configs",
                        Array(
                            Struct(Field("name", STRING), Field("value", STRING, nullable="0+", default=None))
                        ),
                    ),
                )
            ),
        ),
        Field("validate_only", BOOLEAN),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field(
            "responses",
            Array(
                Struct(
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable="0+", default=None),
                    Field("resource_type", INT8),
                    Field("resource_name", STRING),
                )
            ),
        ),
    ),
)

INCREMENTAL_ALTER_CONFIGS: Final = Api(
    44,
    "IncrementalAlterConfigs",
    Versions(0, 1),
    flexible=1,
    request=Struct(
        Field(
            "resources",
            Array(
                Struct(
                    Field("resource_type", INT8),
                    Field("resource_name", STRING),
                    Field(
                        "configs",
                        Array(
                            Struct(
                                Field("name", STRING),
                                Field("config_operation", INT8),
                                Field("value", STRING, nullable="0+", default=None),
                            )
                        ),
                    ),
                )
            ),
        ),
        Field("validate_only", BOOLEAN),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field(
            "responses",
            Array(
                Struct(
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable="0+", default=None),
                    Field("resource_type", INT8),
                    Field("resource_name", STRING),
                )
            ),
        ),
    ),
)
