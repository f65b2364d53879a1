from __future__ import annotations

import uuid
from typing import Any

import pytest

from broker_core.client import ClientError, InvalidQuestion
from broker_core.client.kafka import AdminClient, NewPartitions, NewTopic, TopicCollection
from broker_core.client.kafka.argument_checks import all_of
from broker_core.wire.kafka import CREATE_TOPICS, DELETE_TOPICS, METADATA
from tests.support.scripted_kafka import ScriptedKafka


def test_what_is_of_the_type_is_given_on() -> None:
    assert all_of(str, iter(["a", "b"]), "names") == ["a", "b"]
    assert all_of(int, {1: 2}, "numbers") == [1]
    with pytest.raises(TypeError, match="names are str, not int: 5"):
        all_of(str, ["a", 5], "names")
    with pytest.raises(TypeError, match="names are an iterable of str, and this is one str"):
        all_of(str, "ab", "names")


NODE = "127.0.0.1:1"  # where nobody answers


@pytest.mark.parametrize(
    ("method", "given", "told"),
    [
        ("create_topics", ["a"], "new topics are NewTopic, not str: 'a'"),
        ("describe_topics", [5], "names of topics are str, not int: 5"),
        ("delete_topics", "abc", "names of topics are an iterable of str"),
        ("describe_configs", ["a"], "resources are ConfigResource, not str: 'a'"),
        ("incremental_alter_configs", {"a": []}, "resources are ConfigResource, not str: 'a'"),
        ("create_acls", ["a"], "bindings are AclBinding, not str: 'a'"),
        ("delete_acls", ["a"], "filters are AclFilter, not str: 'a'"),
    ],
)
async def test_an_argument_of_another_type_is_an_error_before_anybody_is_asked(
    method: str, given: Any, told: str
) -> None:
    async with AdminClient(NODE) as client:
        with pytest.raises(TypeError, match=told):
            await getattr(client, method)(given)
    with pytest.raises(TypeError, match="ids of topics are UUID, not str: 'a'"):
        TopicCollection.of_topic_ids(["a"])  # type: ignore[list-item]
    assert TopicCollection.of_topic_ids([uuid.UUID(int=5)]).topic_ids == (uuid.UUID(int=5),)


@pytest.mark.parametrize(
    ("method", "given", "told"),
    [
        ("create_topics", [NewTopic("x" * 40_000)], "40000 bytes of text, at most 32767"),
        ("create_topics", [NewTopic("a", "3")], "num_partitions: expected a whole number, not str '3'"),  # type: ignore[arg-type]
        ("describe_topics", ["x" * 40_000], "40000 bytes of text, at most 32767"),
        ("delete_topics", ["x" * 40_000], "40000 bytes of text, at most 32767"),
        ("create_partitions", {"a": "3"}, "count: expected a whole number, not str '3'"),
        ("create_partitions", {"a": NewPartitions(2, [["x"]])}, "expected a whole number, not str 'x'"),  # type: ignore[list-item]
    ],
)
async def test_a_value_that_no_server_takes_is_not_sent(method: str, given: Any, told: str) -> None:
    async with ScriptedKafka() as node, AdminClient(f"127.0.0.1:{node.port}") as client:
        with pytest.raises(InvalidQuestion, match=told) as raised:
            await getattr(client, method)(given)
        assert isinstance(raised.value, ClientError)
        assert {asked.api for asked in node.asked}.isdisjoint({CREATE_TOPICS, DELETE_TOPICS})
        assert len([asked for asked in node.asked if asked.api is METADATA]) <= 1  # for the controller
