"""Listing topics: by KIP-142's API where the server has it and ids are not asked for, else by Metadata."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

from broker_core.client.errors import UnexpectedAnswer
from broker_core.client.kafka.asking import Asking
from broker_core.client.kafka.calls.nodes import any_node
from broker_core.client.kafka.errors import KafkaException, kafka_error, raise_for
from broker_core.client.kafka.pages import Page, Pager
from broker_core.client.kafka.topic_listings import ListTopicsResult, TopicListing
from broker_core.wire.kafka import LIST_TOPICS, METADATA

__all__ = ["list_topics", "topic_pages"]


async def list_topics(asking: Asking, *, list_internal: bool, topic_ids: bool) -> ListTopicsResult:
    """All topics that the asker may see; internal ones on demand."""

    async def ask() -> ListTopicsResult:
        connection = await asking.cluster.any_node()
        if not topic_ids and connection.has(LIST_TOPICS):
            answer = await connection.ask(LIST_TOPICS, {"list_internal": list_internal})
            raise_for(answer.value["error_code"])
            rows = answer.value["topics"]
            return _result(rows, "internal", None, list_internal=list_internal)
        # Version 0 has no null, and does not tell internal topics.
        answer = await connection.ask(
            METADATA, {"topics": None, "allow_auto_topic_creation": False}, least=10 if topic_ids else 1
        )
        raise_for(answer.value["error_code"])
        rows = answer.value["topics"]
        _check(rows)
        ids = [row["topic_id"] for row in rows] if topic_ids else None
        return _result(rows, "is_internal", ids, list_internal=list_internal)

    return await asking.until_answered(ask)


async def topic_pages(pager: Pager, *, list_internal: bool) -> AsyncIterator[Page[TopicListing]]:
    """Topics by Metadata, each on the first page that has partitions of it, and once more where it was made anew."""
    last: TopicListing | None = None
    body = {"topics": None, "allow_auto_topic_creation": False}
    async for value, paged_by in pager.answers(METADATA, body, any_node, least=1):
        _check(value["topics"])
        found = [TopicListing(row["name"], row["topic_id"], row["is_internal"]) for row in value["topics"]]
        fresh = found[1:] if found and found[0] == last else found
        last = found[-1] if found else last
        yield Page((each for each in fresh if list_internal or not each.is_internal), paged_by)


def _check(rows: list[dict[str, Any]]) -> None:
    """Raise the error of a topic that is not listed for it: a listing without the topic would not be whole."""
    for row in rows:
        if row["name"] is None:
            raise UnexpectedAnswer("a listing has a topic without a name")
        if row["error_code"]:
            failed = kafka_error(row["error_code"], f"topic {row['name']!r}")
            assert isinstance(failed, KafkaException)
            # A topic whose partitions have no leader just now is there all the same.
            if not failed.retriable:
                raise failed


def _result(
    rows: list[dict[str, Any]], flag: str, ids: list[uuid.UUID] | None, *, list_internal: bool
) -> ListTopicsResult:
    internal = bytes(row[flag] for row in rows)
    names = [row["name"] for row in rows]
    if list_internal or not any(internal):
        return ListTopicsResult(names, internal, ids)
    kept = [at for at, is_internal in enumerate(internal) if not is_internal]
    return ListTopicsResult(
        [names[at] for at in kept], bytes(len(kept)), None if ids is None else [ids[at] for at in kept]
    )
