from __future__ import annotations

import uuid

import pytest

from broker_core.client.kafka import (
    AdminClient,
    TopicAuthorizationException,
    TopicCollection,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
    UnsupportedVersionException,
)
from broker_core.wire.kafka import API_VERSIONS, DELETE_TOPICS, METADATA, ZERO_ID
from tests.support.clock import AGES
from tests.support.scripted_kafka import ScriptedKafka

ID = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")
OTHER = uuid.UUID("22345678-9abc-4def-8123-456789abcdef")


async def test_by_name(client: AdminClient, node: ScriptedKafka) -> None:
    # Servers answer in any order.
    rows = [{"name": "b", "error_code": 3, "error_message": "none"}, {"name": "a", "topic_id": ID}]
    node.handlers[DELETE_TOPICS] = lambda _: {"responses": rows}
    result = await client.delete_topics(["a", "b"])
    assert list(result) == ["a", "b"]
    assert result["a"] is None
    with pytest.raises(UnknownTopicOrPartitionException, match="none"):
        result.all()
    assert node.of(DELETE_TOPICS)[0]["topics"] == [
        {"name": "a", "topic_id": ZERO_ID},
        {"name": "b", "topic_id": ZERO_ID},
    ]


async def test_by_id(client: AdminClient, node: ScriptedKafka) -> None:
    rows = [
        {"name": None, "topic_id": OTHER, "error_code": 100},
        {"name": "a", "topic_id": ID, "error_code": 29},
    ]
    node.handlers[DELETE_TOPICS] = lambda _: {"responses": rows}
    result = await client.delete_topics(TopicCollection.of_topic_ids([ID, OTHER]))
    with pytest.raises(TopicAuthorizationException):
        result[ID]
    with pytest.raises(UnknownTopicIdException):
        result[OTHER]
    assert node.of(DELETE_TOPICS)[0]["topics"] == [
        {"name": None, "topic_id": ID},
        {"name": None, "topic_id": OTHER},
    ]


async def test_an_older_server_takes_names_alone() -> None:
    versions = {API_VERSIONS: (0, 4), METADATA: (0, 8), DELETE_TOPICS: (1, 5)}
    async with (
        ScriptedKafka(versions=versions) as node,
        AdminClient(node.address, api_timeout=AGES) as client,
    ):
        node.handlers[DELETE_TOPICS] = lambda _: {"responses": [{"name": "a"}]}
        assert (await client.delete_topics(["a"])).all() == {"a": None}
        assert node.of(DELETE_TOPICS)[0]["topic_names"] == ["a"]
        with pytest.raises(UnsupportedVersionException, match="from version 6 on"):
            await client.delete_topics(TopicCollection.of_topic_ids([ID]))


async def test_nothing_is_not_asked(client: AdminClient, node: ScriptedKafka) -> None:
    assert (await client.delete_topics([])).all() == {}
    assert (await client.delete_topics(TopicCollection.of_topic_ids([]))).all() == {}
    assert node.asked == []
