from __future__ import annotations

import uuid
from typing import Any

import pytest

from broker_core.client import UnexpectedAnswer
from broker_core.client.kafka import (
    AdminClient,
    TimeoutException,
    TopicAuthorizationException,
    TopicListing,
    UnsupportedVersionException,
)
from broker_core.wire.kafka import API_VERSIONS, LIST_TOPICS, METADATA, ZERO_ID, Fields
from tests.support.clock import AGES
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of

ID = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")
ORDERS: dict[str, Any] = {"error_code": 0, "name": "orders", "topic_id": ID, "is_internal": False}
OFFSETS: dict[str, Any] = ORDERS | {"name": "__consumer_offsets", "topic_id": ZERO_ID, "is_internal": True}


@pytest.mark.parametrize("wanted", [False, True])
async def test_names_alone_of_a_server_that_has_them(
    client: AdminClient, node: ScriptedKafka, *, wanted: bool
) -> None:
    node.handlers[LIST_TOPICS] = lambda asked: {
        "topics": [{"name": "orders"}] + [{"name": "__x", "internal": True}] * asked.value["list_internal"]
    }
    listed = await client.list_topics(list_internal=wanted)
    assert (
        list(listed)
        == [TopicListing("orders", ZERO_ID, False), TopicListing("__x", ZERO_ID, True)][: 1 + wanted]
    )
    assert node.of(LIST_TOPICS) == [{"list_internal": wanted}]
    assert node.of(METADATA) == []


async def test_ids_are_always_of_metadata(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[LIST_TOPICS] = lambda _: {"topics": []}
    node.handlers[METADATA] = lambda _: metadata_of(node, topics=[ORDERS, OFFSETS])
    listed = await client.list_topics(topic_ids=True)
    assert list(listed) == [TopicListing("orders", ID, False)]
    assert listed.topic_id("orders") == ID
    assert (await client.list_topics(topic_ids=True, list_internal=True)).names() == [
        "orders",
        "__consumer_offsets",
    ]
    asked = node.of(METADATA)[-1]
    assert (asked["topics"], asked["allow_auto_topic_creation"]) == (None, False)
    assert node.of(LIST_TOPICS) == []


async def test_a_topic_that_was_made_anew_between_two_pages_is_listed_once(
    client: AdminClient, node: ScriptedKafka
) -> None:
    cursor = {"topic_name": "orders", "partition_index": 1, "topic_id": ID}
    anew = uuid.UUID(int=7)

    def answered(asked: Asked) -> Fields:
        if asked.value["response_pagination_limit"] == -1:
            return {"error_code": 42}
        if asked.value["cursor"] is None:
            return metadata_of(node, topics=[OFFSETS, ORDERS]) | {"next_cursor": cursor}
        return metadata_of(node, topics=[ORDERS | {"topic_id": anew}, ORDERS | {"name": "z"}])

    node.handlers[METADATA] = answered
    listed = await client.list_topics(topic_ids=True)
    assert [(each.name, each.topic_id) for each in listed] == [("orders", anew), ("z", ID)]
    assert listed.paged_by == "server"


async def test_a_server_without_it_is_asked_for_metadata() -> None:
    async with ScriptedKafka(versions={API_VERSIONS: (0, 4), METADATA: (0, 9)}) as node:
        node.handlers[METADATA] = lambda _: metadata_of(node, topics=[ORDERS, OFFSETS])
        async with AdminClient(node.address, api_timeout=AGES) as client:
            assert (await client.list_topics()).names() == ["orders"]
            with pytest.raises(UnsupportedVersionException, match="from version 10 on"):
                await client.list_topics(topic_ids=True)


async def test_a_listing_that_failed_is_no_listing(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[LIST_TOPICS] = lambda _: {"error_code": 29, "topics": []}
    with pytest.raises(TopicAuthorizationException):
        await client.list_topics()


async def test_a_listing_that_is_late_is_asked_for_again(client: AdminClient, node: ScriptedKafka) -> None:
    answers: list[Fields] = [{"error_code": 7, "topics": []}, {"topics": [{"name": "orders"}]}]
    node.handlers[LIST_TOPICS] = lambda _: answers.pop(0)
    assert (await client.list_topics()).names() == ["orders"]
    node.handlers[LIST_TOPICS] = lambda _: {"error_code": 7, "topics": []}
    with pytest.raises(TimeoutException, match="REQUEST_TIMED_OUT"):
        await client.list_topics(timeout=0.01)


async def test_a_topic_that_cannot_be_told_fails_the_listing(
    client: AdminClient, node: ScriptedKafka
) -> None:
    rows = [ORDERS, ORDERS | {"name": "hidden", "error_code": 29}]
    node.handlers[METADATA] = lambda _: metadata_of(node, topics=rows)
    with pytest.raises(TopicAuthorizationException, match="topic 'hidden'"):
        await client.list_topics()
    rows[1] = ORDERS | {"name": None}
    with pytest.raises(UnexpectedAnswer):
        await client.list_topics()


async def test_a_topic_without_a_leader_is_listed(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[METADATA] = lambda _: metadata_of(node, topics=[ORDERS | {"error_code": 5}])
    assert (await client.list_topics()).names() == ["orders"]
