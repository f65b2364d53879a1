"""Requests of producers and consumers to a gateway: refused at once, with codes at which their clients give up.

Messages are the cluster's: a client that produces or consumes has to connect to it, and not to its admin gateway.
"""

from __future__ import annotations

from typing import Final

from broker_core.servers.kafka.apis.refused_produce_and_fetch import fail_fast_rows
from broker_core.servers.kafka.gateway.relay import front_of
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.wire.kafka import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP, ErrorCode, Fields

__all__ = ["REFUSAL_ROWS"]


def _text(call: KafkaCall) -> str:
    return f"This server is the admin gateway of {front_of(call).name}: produce to and consume from the cluster itself"


def _join(_call: KafkaCall) -> Fields:
    return {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED, "generation_id": -1}


def _heartbeat(call: KafkaCall) -> Fields:
    return {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED, "error_message": _text(call)}


REFUSAL_ROWS: Final = (
    *fail_fast_rows(_text),
    HandlerRow(JOIN_GROUP, _join),
    HandlerRow(CONSUMER_GROUP_HEARTBEAT, _heartbeat),
)
