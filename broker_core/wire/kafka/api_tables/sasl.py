"""SaslHandshake (key 17) agrees on a mechanism; SaslAuthenticate (key 36) carries its tokens."""

from __future__ import annotations

from typing import Final

from broker_core.wire.kafka.api import NEVER, Api
from broker_core.wire.kafka.fields import BYTES, INT16, INT64, STRING, Array, Field, Struct, Versions

__all__ = ["SASL_AUTHENTICATE", "SASL_HANDSHAKE"]

SASL_HANDSHAKE: Final = Api(
    17,
    "SaslHandshake",
    Versions(0, 1),
    flexible=NEVER,
    request=Struct(Field("mechanism", STRING)),
    response=Struct(Field("error_code", INT16), Field("mechanisms", Array(STRING))),
)

SASL_AUTHENTICATE: Final = Api(
    36,
    "SaslAuthenticate",
    Versions(0, 2),
    flexible=2,
    request=Struct(Field("auth_bytes", BYTES)),
    response=Struct(
        Field("error_code", INT16),
        Field("error_message", STRING, nullable="0+", default=None),
        Field("auth_bytes", BYTES),
        Field("session_lifetime_ms", INT64, "1+"),
    ),
)
