from __future__ import annotations

import uuid
from typing import Any

import pytest

from broker_core.client import UnexpectedAnswer
from broker_core.client.kafka import (
    AdminClient,
    InvalidTopicException,
    Node,
    Operation,
    TopicCollection,
    UnknownTopicIdException,
    UnknownTopicOrPartitionException,
    UnsupportedVersionException,
)
from broker_core.client.kafka.calls.describe_topics import _DescribedPages
from broker_core.wire.kafka import (
    API_VERSIONS,
    DESCRIBE_TOPIC_PARTITIONS,
    METADATA,
    ZERO_ID,
    Fields,
)
from tests.support.clock import AGES
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of

ID = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")
OTHER = uuid.UUID("22345678-9abc-4def-8123-456789abcdef")


def partition(number: int, **fields: Any) -> Fields:
    return {
        "partition_index": number,
        "leader_id": 1,
        "replica_nodes": [1, 7],
        "isr_nodes": [1],
        **fields,
    }


def topic(name: str | None, *partitions: Fields, **fields: Any) -> Fields:
    return {"name": name, "topic_id": ID, "partitions": list(partitions), **fields}


async def test_by_name_over_pages(client: AdminClient, node: ScriptedKafka) -> None:
    def describe(asked: Asked) -> Fields:
        if asked.value["cursor"] is None:
            rows = [topic("a", partition(1), partition(0, eligible_leader_replicas=[], last_known_elr=[7]))]
            return {"topics": rows, "next_cursor": {"topic_name": "a", "partition_index": 2}}
        return {"topics": [topic("a", partition(2, leader_id=-1)), topic("b", error_code=3)]}

    node.handlers[DESCRIBE_TOPIC_PARTITIONS] = describe
    found = await client.describe_topics(["b", "a", ""])
    assert list(found) == ["b", "a", ""]
    us = Node(1, "127.0.0.1", node.port)
    described = found["a"]
    assert (described.name, described.topic_id, described.is_internal) == ("a", ID, False)
    assert [each.partition for each in described.partitions] == [0, 1, 2]
    first = described.partitions[0]
    assert (first.leader, first.replicas, first.isr) == (us, (us, Node(7)), (us,))
    assert (first.eligible_leader_replicas, first.last_known_elr) == ((), (Node(7),))
    assert described.partitions[2].leader is None
    assert described.partitions[2].eligible_leader_replicas is None
    assert described.authorized_operations is None
    with pytest.raises(UnknownTopicOrPartitionException):
        found["b"]
    with pytest.raises(InvalidTopicException):
        found[""]


async def test_authorized_operations_on_demand(client: AdminClient, node: ScriptedKafka) -> None:
    row = topic("a", topic_authorized_operations=1 << 8)
    node.handlers[DESCRIBE_TOPIC_PARTITIONS] = lambda _: {"topics": [row]}
    assert (await client.describe_topics(["a"]))["a"].authorized_operations is None
    found = await client.describe_topics(["a"], include_authorized_operations=True)
    assert found["a"].authorized_operations == frozenset({Operation.DESCRIBE})


async def test_a_topic_that_the_answer_leaves_out_is_an_error(
    client: AdminClient, node: ScriptedKafka
) -> None:
    node.handlers[DESCRIBE_TOPIC_PARTITIONS] = lambda _: {"topics": []}
    with pytest.raises(UnexpectedAnswer, match="no row for a"):
        (await client.describe_topics(["a"]))["a"]


async def test_an_older_server_is_asked_for_metadata() -> None:
    async with ScriptedKafka(versions={API_VERSIONS: (0, 4), METADATA: (0, 7)}) as node:
        rows = [topic("a", partition(0)), topic("b", error_code=3)]
        node.handlers[METADATA] = lambda _: metadata_of(node, topics=rows)
        async with AdminClient(node.address, api_timeout=AGES) as client:
            found = await client.describe_topics(["a", "b"])
            assert found["a"].topic_id == ZERO_ID
            assert found["a"].partitions[0].leader == Node(1, "127.0.0.1", node.port)
            assert isinstance(found.errors["b"], UnknownTopicOrPartitionException)
            asked = node.of(METADATA)[-1]
            assert [each["name"] for each in asked["topics"]] == ["a", "b"]
            assert asked["allow_auto_topic_creation"] is False
            with pytest.raises(UnsupportedVersionException):
                await client.describe_topics(["a"], include_authorized_operations=True)
            with pytest.raises(UnsupportedVersionException, match="from version 12 on"):
                await client.describe_topics(TopicCollection.of_topic_ids([ID]))


async def test_by_id(client: AdminClient, node: ScriptedKafka) -> None:
    rows = [topic("a", partition(0)), topic(None, topic_id=OTHER, error_code=100)]
    node.handlers[METADATA] = lambda _: metadata_of(node, topics=rows)
    found = await client.describe_topics(TopicCollection.of_topic_ids([OTHER, ID, ZERO_ID]))
    assert list(found) == [OTHER, ID, ZERO_ID]
    assert found[ID].name == "a"
    with pytest.raises(UnknownTopicIdException):
        found[OTHER]
    with pytest.raises(InvalidTopicException):
        found[ZERO_ID]
    assert node.of(METADATA)[-1]["topics"] == [
        {"topic_id": OTHER, "name": None},
        {"topic_id": ID, "name": None},
    ]


async def test_a_topic_without_a_name_is_none(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[METADATA] = lambda _: metadata_of(node, topics=[topic(None)])
    found = await client.describe_topics(TopicCollection.of_topic_ids([ID]))
    assert isinstance(found.errors[ID], UnexpectedAnswer)


async def test_nothing_is_not_asked(client: AdminClient, node: ScriptedKafka) -> None:
    assert (await client.describe_topics([])).all() == {}
    assert (await client.describe_topics(TopicCollection.of_topic_ids([]))).all() == {}
    assert node.asked == []


def row(name: str, *partitions: int, topic_id: int = 1, error_code: int = 0) -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id, "partitions": list(partitions), "error_code": error_code}


def page(*rows: dict[str, Any], after: tuple[str, int] | None = None) -> dict[str, Any]:
    cursor = None if after is None else {"topic_name": after[0], "partition_index": after[1]}
    return {"topics": list(rows), "next_cursor": cursor}


def asked(pages: _DescribedPages) -> tuple[list[str], tuple[str, int] | None] | None:
    request = pages.request()
    if request is None:
        return None
    cursor = request["cursor"]
    names = [each["name"] for each in request["topics"]]
    return names, None if cursor is None else (cursor["topic_name"], cursor["partition_index"])


def test_a_topic_over_several_pages() -> None:
    pages = _DescribedPages(["b", "c", "a"])
    assert asked(pages) == (["a", "b", "c"], None)
    pages.take(page(row("a", 0), row("b", 0, 1), after=("b", 2)))
    assert asked(pages) == (["b", "c"], ("b", 2))
    pages.take(page(row("b", 2), after=("c", 0)))
    assert asked(pages) == (["c"], None)
    pages.take(page(row("c", 0)))
    assert asked(pages) is None
    assert {name: found["partitions"] for name, found in pages.found.items()} == {
        "a": [0],
        "b": [0, 1, 2],
        "c": [0],
    }


def test_a_topic_that_was_made_anew_between_two_pages_is_asked_for_again() -> None:
    pages = _DescribedPages(["a", "b"])
    pages.take(page(row("a", 0, 1), after=("a", 2)))
    pages.take(page(row("a", 2, topic_id=2), row("b", 0)))
    assert asked(pages) == (["a"], None)
    pages.take(page(row("a", 0, 1, 2, topic_id=2)))
    assert asked(pages) is None
    assert pages.found["a"]["partitions"] == [0, 1, 2]
    assert pages.found["a"]["topic_id"] == 2


def test_a_topic_that_was_deleted_between_two_pages_has_its_error() -> None:
    pages = _DescribedPages(["a"])
    pages.take(page(row("a", 0, 1), after=("a", 2)))
    pages.take(page(row("a", error_code=3)))
    assert asked(pages) is None
    assert pages.found["a"]["error_code"] == 3


def test_rows_come_in_any_order_and_more_than_once() -> None:
    pages = _DescribedPages(["a", "b", "c"])
    pages.take(page(row("a", 0), row("c", error_code=29), after=("b", 0)))
    pages.take(page(row("b", 0), row("c", error_code=29)))
    assert asked(pages) is None
    assert set(pages.found) == {"a", "b", "c"}


@pytest.mark.parametrize("after", [("b", 2), ("b", 1), ("a", 7), ("b", -1), ("bb", 0), ("z", 0)])
def test_a_cursor_that_does_not_go_on_is_no_way_to_loop(after: tuple[str, int]) -> None:
    pages = _DescribedPages(["a", "b", "c"])
    pages.take(page(row("a", 0), after=("b", 2)))
    with pytest.raises(UnexpectedAnswer, match="would begin at"):
        pages.take(page(after=after))


def test_the_first_cursor_goes_on_too() -> None:
    with pytest.raises(UnexpectedAnswer):
        _DescribedPages(["a"]).take(page(after=("a", 0)))


def test_no_names_have_no_page() -> None:
    assert _DescribedPages([]).request() is None
