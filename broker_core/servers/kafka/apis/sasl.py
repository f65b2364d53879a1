"""SaslHandshake and SaslAuthenticate after authentication, or on a listener without SASL: both are refused.

All others are answered by the connection's :class:`~broker_core.servers.kafka.sasl.sasl_session.SaslSession`.
"""

from __future__ import annotations

from typing import Final

from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.wire.kafka import SASL_AUTHENTICATE, SASL_HANDSHAKE, ErrorCode, Fields

__all__ = ["SASL_ROWS"]


def _no_handshake(_: KafkaCall) -> Fields:
    return {"error_code": ErrorCode.ILLEGAL_SASL_STATE}


def _no_token(_: KafkaCall) -> Fields:
    return {
        "error_code": ErrorCode.ILLEGAL_SASL_STATE,
        "error_message": "SaslAuthenticate request received after successful authentication",
    }


SASL_ROWS: Final = (
    HandlerRow(SASL_HANDSHAKE, _no_handshake),
    HandlerRow(SASL_AUTHENTICATE, _no_token),
)
