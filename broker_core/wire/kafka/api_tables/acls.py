"""DescribeAcls (key 29), CreateAcls (key 30) and DeleteAcls (key 31): who may do what with which resources."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import INT8, INT16, INT32, STRING, Array, Field, Struct, Versions

__all__ = ["CREATE_ACLS", "DELETE_ACLS", "DESCRIBE_ACLS"]

DESCRIBE_ACLS: Final = Api(
    29,
    "DescribeAcls",
    Versions(1, 3),
    flexible=2,
    request=Struct(
        Field("resource_type_filter", INT8),
        Field("resource_name_filter", STRING, nullable="0+", default=None),
        Field("pattern_type_filter", INT8, default=3),
        Field("principal_filter", STRING, nullable="0+", default=None),
        Field("host_filter", STRING, nullable="0+", default=None),
        Field("operation", INT8),
        Field("permission_type", INT8),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable="0+", default=None),
        Field(
            "resources",
            Array(
                Struct(
                    Field("resource_type", INT8),
                    Field("resource_name", STRING),
                    Field("pattern_type", INT8, default=3),
                    Field(
                        "acls",
                        Array(
                            Struct(
                                Field("principal", STRING),
                                Field("host", STRING),
                                Field("operation", INT8),
                                Field("permission_type", INT8),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
)

CREATE_ACLS: Final = Api(
    30,
    "CreateAcls",
    Versions(1, 3),
    flexible=2,
    request=Struct(
        Field(
            "creations",
            Array(
                Struct(
                    Field("resource_type", INT8),
                    Field("resource_name", STRING),
                    Field("resource_pattern_type", INT8, default=3),
                    Field("principal", STRING),
                    Field("host", STRING),
                    Field("operation", INT8),
                    Field("permission_type", INT8),
                )
            ),
        )
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field(
            "results",
            Array(
                Struct(
                    Field("error_code", INT16), Field("error_message", STRING, nullable="0+", default=None)
                )
            ),
        ),
    ),
)

DELETE_ACLS: Final = Api(
    31,
    "DeleteAcls",
    Versions(1, 3),
    flexible=2,
    request=Struct(
        Field(
            "filters",
            Array(
                Struct(
                    Field("resource_type_filter", INT8),
                    Field("resource_name_filter", STRING, nullable="0+", default=None),
                    Field("pattern_type_filter", INT8, default=3),
                    Field("principal_filter", STRING, nullable="0+", default=None),
                    Field("host_filter", STRING, nullable="0+", default=None),
                    Field("operation", INT8),
                    Field("permission_type", INT8),
                )
            ),
        )
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field(
            "filter_results",
            Array(
                Struct(
                    Field("error_code", INT16),
                    Field("error_message", STRING, nullable="0+", default=None),
                    Field(
                        "matching_acls",
                        Array(
                            Struct(
                                Field("error_code", INT16),
                                Field("error_message", STRING, nullable="0+", default=None),
                                Field("resource_type", INT8),
                                Field("resource_name", STRING),
                                Field("pattern_type", INT8, default=3),
                                Field("principal", STRING),
                                Field("host", STRING),
                                Field("operation", INT8),
                                Field("permission_type", INT8),
                            )
                        ),
                    ),
                )
            ),
        ),
    ),
)
