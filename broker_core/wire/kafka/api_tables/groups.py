"""ListGroups (key 16) and DescribeGroups (key 15): groups of consumers."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.api_tables.metadata import NOT_ASKED
from broker_core.wire.kafka.fields import BOOLEAN, BYTES, INT16, INT32, STRING, Array, Field, Struct, Versions

__all__ = ["DESCRIBE_GROUPS", "LIST_GROUPS"]

LIST_GROUPS: Final = Api(
    16,
    "ListGroups",
    Versions(0, 5),
    flexible=3,
    request=Struct(Field("states_filter", Array(STRING), "4+"), Field("types_filter", Array(STRING), "5+")),
    response=Struct(
        Field("throttle_time_ms", INT32, "1+"),
        Field("error_code", INT16),
        Field(
            "groups",
            Array(
                Struct(
                    Field("group_id", STRING),
                    Field("protocol_type", STRING),
                    Field("group_state", STRING, "4+"),
                    Field("group_type", STRING, "5+"),
                )
            ),
        ),
    ),
)

DESCRIBE_GROUPS: Final = Api(
    15,
    "DescribeGroups",
    Versions(0, 6),
    flexible=5,
    request=Struct(Field("groups", Array(STRING)), Field("include_authorized_operations", BOOLEAN, "3+")),
    response=Struct(
        Field("throttle_time_ms", INT32, "1+"),
        Field(
            "groups",
            Array(
                Struct(
                    Field("error_code", INT16),
                    Field("error_message", STRING, "6+", nullable="6+", default=None),
                    Field("group_id", STRING),
                    Field("group_state", STRING),
                    Field("protocol_type", STRING),
                    Field("protocol_data", STRING),
                    Field(
                        "members",
                        Array(
                            Struct(
                                Field("member_id", STRING),
                                Field("group_instance_id", STRING, "4+", nullable="4+", default=None),
                                Field("client_id", STRING),
                                Field("client_host", STRING),
                                Field("member_metadata", BYTES),
                                Field("member_assignment", BYTES),
                            )
                        ),
                    ),
                    Field("authorized_operations", INT32, "3+", default=NOT_ASKED),
                )
            ),
        ),
    ),
)
