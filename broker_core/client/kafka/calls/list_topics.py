"""Listing topics: by KIP-142's API if the server has it and ids are not asked for, else by Metadata in pages."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Final

from broker_core.client.client_errors import UnexpectedAnswer
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.calls.nodes import any_node
from broker_core.client.kafka.kafka_errors import KafkaException, kafka_error, raise_for
from broker_core.client.kafka.pages import Page, Pager
from broker_core.client.kafka.results import PagedBy
from broker_core.client.kafka.topic_listings import ListTopicsResult, TopicListing
from broker_core.wire.kafka import LIST_TOPICS, METADATA, Fields

__all__ = ["list_topics", "topic_pages"]


_EVERY: Final = {"topics": None, "allow_auto_topic_creation": False}


async def list_topics(pager: Pager, *, list_internal: bool, topic_ids: bool) -> ListTopicsResult:
    """All topics that the asker may see; internal ones on demand."""
    listed = None if topic_ids else await _names_alone(pager.attempts(), list_internal=list_internal)
    if listed is not None:
        return listed
    names: list[str] = []
    ids: list[uuid.UUID] = []
    internal = bytearray()
    paged_by: PagedBy = None
    # Version 0 has no null, and does not mark internal topics.
    least = 10 if topic_ids else 1
    async for answer, by in pager.answers(METADATA, _EVERY, any_node, least=least, check=_check):
        paged_by = by
        for row in answer["topics"]:
            if names and names[-1] == row["name"]:  # it goes on, or another topic has its name by now
                ids[-1] = row["topic_id"]
            elif list_internal or not row["is_internal"]:
                names.append(row["name"])
                ids.append(row["topic_id"])
                internal.append(row["is_internal"])
    return ListTopicsResult(names, bytes(internal), ids if topic_ids else None, paged_by)


async def _names_alone(attempts: Attempts, *, list_internal: bool) -> ListTopicsResult | None:
    """The names of a server that has the API for them."""

    async def ask() -> ListTopicsResult | None:
        connection = await attempts.cluster.any_node()
        if not connection.has(LIST_TOPICS):
            return None
        value = await connection.ask(LIST_TOPICS, {"list_internal": list_internal})
        raise_for(value["error_code"])
        rows = [row for row in value["topics"] if list_internal or not row["internal"]]
        return ListTopicsResult([row["name"] for row in rows], bytes(row["internal"] for row in rows))

    return await attempts.until_answered(ask)


async def topic_pages(pager: Pager, *, list_internal: bool) -> AsyncIterator[Page[TopicListing]]:
    """Topics by Metadata, each on the first page with its partitions, and once more if it was recreated."""
    last: TopicListing | None = None
    async for answer, paged_by in pager.answers(METADATA, _EVERY, any_node, least=1, check=_check):
        rows = answer["topics"]
        found = [TopicListing(row["name"], row["topic_id"], row["is_internal"]) for row in rows]
        fresh = found[1:] if found and found[0] == last else found
        last = found[-1] if found else last
        yield Page((each for each in fresh if list_internal or not each.is_internal), paged_by)


def _check(answer: Fields) -> None:
    """Raise the error of a topic: a listing without the topic would not be whole."""
    for row in answer["topics"]:
        if row["name"] is None:
            raise UnexpectedAnswer("a listing has a topic without a name")
        if row["error_code"]:
            failed = kafka_error(row["error_code"], f"topic {row['name']!r}")
            assert isinstance(failed, KafkaException)
            # A topic whose partitions have no leader now exists all the same.
            if not failed.retriable:
                raise failed
