"""One answer of the cluster, shared by all pages of a request for everything of one kind."""

from __future__ import annotations

import asyncio

from broker_core.client import ClientError
from broker_core.client.kafka import LARGE_ANSWER
from broker_core.servers.kafka.gateway.relay import front_of
from broker_core.servers.kafka.pages.kept_answers import WholeAnswer
from broker_core.servers.kafka.pages.raw_units import kept_size
from broker_core.servers.kafka.requests.call import AnswerLater, KafkaCall
from broker_core.wire.kafka import Api, Fields

__all__ = ["of_pass"]


async def of_pass(api: Api, later: AnswerLater, call: KafkaCall) -> Fields:
    """A handler of requests for everything. The first page of a pass asks the cluster, and later pages are made of the
    same answer, for the same role, while it is kept.
    """
    page, front = call.page, front_of(call)
    if page is None or call.size or call.body.get("topics"):  # some of it
        return await later(call)
    try:
        key = front.question(call.asker, call.node.of_cluster, api, call.version, call.body)
    except ClientError:
        return await later(call)
    kept = None if page.start is None else front.answers.get(key)
    if kept is not None:
        page.whole = kept
        return kept.fields
    began, mark = asyncio.get_running_loop().time(), front.answers.mark
    fields = await later(call)
    if not fields.get("error_code"):
        # Rows that stay bytes are kept with the data for their pages; small ones hold no permits before.
        size = max(sum(permit.count for permit in call.held), kept_size(fields), LARGE_ANSWER)
        permit = call.room_to_keep(size)
        if permit is not None:
            page.whole = WholeAnswer(fields, permit)
            front.answers.keep(key, page.whole, began, mark)
    return fields
