"""ApiVersions (key 18): which APIs a server has, in which versions. Its answers have header 0 in every version."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import BOOLEAN, INT16, INT32, INT64, STRING, Array, Field, Struct, Versions

__all__ = ["API_VERSIONS"]

API_VERSIONS: Final = Api(
    18,
    "ApiVersions",
    Versions(0, 4),
    flexible=3,
    request=Struct(
        Field("client_software_name", STRING, "3+"), Field("client_software_version", STRING, "3+")
    ),
    response=Struct(
        Field("error_code", INT16),
        Field(
            "api_keys",
            Array(Struct(Field("api_key", INT16), Field("min_version", INT16), Field("max_version", INT16))),
        ),
        Field("throttle_time_ms", INT32, "1+"),
        Field(
            "supported_features",
            Array(
                Struct(
                    Field("name", STRING, "3+"),
                    Field("min_version", INT16, "3+"),
                    Field("max_version", INT16, "3+"),
                )
            ),
            "3+",
            tag=0,
        ),
        Field("finalized_features_epoch", INT64, "3+", default=-1, tag=1),
        Field(
            "finalized_features",
            Array(
                Struct(
                    Field("name", STRING, "3+"),
                    Field("max_version_level", INT16, "3+"),
                    Field("min_version_level", INT16, "3+"),
                )
            ),
            "3+",
            tag=2,
        ),
        Field("zk_migration_ready", BOOLEAN, "3+", tag=3),
    ),
    plain_response_header=True,
)
