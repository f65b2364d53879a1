"""Passes of pages over everything of one kind in a cluster: each costs the cluster one listing, and not one a page."""

from __future__ import annotations

import asyncio

from broker_core.client import ClientError
from broker_core.client.kafka import LARGE_ANSWER
from broker_core.memory import PermitError
from broker_core.servers.kafka.gateway.relay import front_of
from broker_core.servers.kafka.pages.answer_page import without_page
from broker_core.servers.kafka.pages.kept_answers import WholeAnswer
from broker_core.servers.kafka.pages.raw_units import KEPT
from broker_core.servers.kafka.requests.call import KafkaCall
from broker_core.servers.kafka.requests.handler_row import AnswerLater
from broker_core.wire.kafka import Api, Fields, RawRows

__all__ = ["of_pass"]


def of_pass(api: Api, later: AnswerLater) -> AnswerLater:
    """A handler of requests for everything. The first page of a pass asks the cluster, and later pages are made of the
    same answer, for the same role, while it is kept.
    """

    async def answer(call: KafkaCall) -> Fields:
        page, front = call.page, front_of(call)
        if page is None or call.size or call.body.get("topics"):  # some of it
            return await later(call)
        try:
            identity = front.identity(call.asker)
        except ClientError:
            return await later(call)
        who = (call.asker.role, None if identity is None else identity.key)
        key = (who, call.node.of_cluster, api.key, call.version, repr(without_page(call.body)))
        kept = None if page.start is None else front.answers.get(key)
        if kept is not None:
            page.whole = kept
            return kept.fields
        began, mark = asyncio.get_running_loop().time(), front.answers.mark
        fields = await later(call)
        if not fields.get("error_code"):
            # Rows that stay bytes are kept with the data for their pages; small ones hold no permits before.
            raw = sum(KEPT * rows.nbytes for rows in fields.values() if isinstance(rows, RawRows))
            size = max(sum(permit.count for permit in call.held), raw, LARGE_ANSWER)
            try:
                permit = call.services.pipeline.permits.snapshots.try_acquire(size)
            except PermitError:
                permit = None
            if permit is not None:
                page.whole = WholeAnswer(fields, permit)
                front.answers.keep(key, page.whole, began, mark)
        return fields

    return answer
