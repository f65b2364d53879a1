"""DescribeCluster (key 60): the brokers, the controller and the id of the cluster."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.api_tables.metadata import NOT_ASKED
from broker_core.wire.kafka.fields import BOOLEAN, INT8, INT16, INT32, STRING, Array, Field, Struct, Versions

__all__ = ["DESCRIBE_CLUSTER"]

DESCRIBE_CLUSTER: Final = Api(
    60,
    "DescribeCluster",
    Versions(0, 2),
    flexible=0,
    request=Struct(
        Field("include_cluster_authorized_operations", BOOLEAN),
        Field("endpoint_type", INT8, "1+", default=1),
        Field("include_fenced_brokers", BOOLEAN, "2+"),
    ),
    response=Struct(
        Field("throttle_time_ms", INT32),
        Field("error_code", INT16),
        Field("error_message", STRING, nullable="0+", default=None),
        Field("endpoint_type", INT8, "1+", default=1),
        Field("cluster_id", STRING),
        Field("controller_id", INT32, default=-1),
        Field(
            "brokers",
            Array(
                Struct(
                    Field("broker_id", INT32),
                    Field("host", STRING),
                    Field("port", INT32),
                    Field("rack", STRING, nullable="0+", default=None),
                    Field("is_fenced", BOOLEAN, "2+"),
                )
            ),
        ),
        Field("cluster_authorized_operations", INT32, default=NOT_ASKED),
    ),
)
