"""ListTopics (KIP-142): names alone, without topics that the client may not describe."""

from __future__ import annotations

from typing import Final

from broker_core.errors import ListingFailed
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall
from broker_core.servers.kafka.row_error import code_of
from broker_core.wire.kafka import LIST_TOPICS, Fields
from broker_core.wire.kafka.topic_fragments import LISTED_FAMILY

__all__ = ["LIST_TOPICS_ROW"]


async def _list(call: KafkaCall) -> Fields:
    try:
        listed = await call.services.topics.all_encoded(
            call, LISTED_FAMILY, internal=call.body["list_internal"]
        )
    except ListingFailed as failure:
        return {"error_code": code_of(failure)}
    return {"topics": listed}


LIST_TOPICS_ROW: Final = HandlerRow(LIST_TOPICS, _list)
