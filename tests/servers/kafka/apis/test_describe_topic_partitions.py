from __future__ import annotations

from pathlib import Path
from typing import Any

from broker_core import TopicListingResult
from broker_core.catalog import SqliteCatalog
from broker_core.servers.kafka.apis.describe_topic_partitions import DESCRIBE_TOPIC_PARTITIONS_ROW
from broker_core.servers.kafka.requests.paged_requests import with_pages
from broker_core.wire.kafka import (
    DESCRIBE_TOPIC_PARTITIONS,
    NOT_REQUESTED,
    Fields,
    read_response,
    response_frame,
)
from tests.support.kafka_calls import NotX, call_of, services_of
from tests.support.kafka_serving import kafka_broker, raw_client
from tests.support.kafka_topics import create, kafka_topics
from tests.support.plugins import PluginOf

Answer = tuple[list[tuple[str, int, list[int]]], tuple[str, int] | None]


def shown(answer: Fields) -> Answer:
    rows = [
        (row["name"], row["error_code"], [each["partition_index"] for each in row["partitions"]])
        for row in answer["topics"]
    ]
    cursor = answer["next_cursor"]
    return rows, None if cursor is None else (cursor["topic_name"], cursor["partition_index"])


async def ask(
    catalog: SqliteCatalog, names: list[str], limit: int = 2000, cursor: tuple[str, int] | None = None
) -> Fields:
    async with kafka_topics(catalog, authorizer=NotX()) as m:
        body = {
            "topics": [{"name": name} for name in names],
            "response_partition_limit": limit,
            "cursor": cursor and {"topic_name": cursor[0], "partition_index": cursor[1]},
        }
        services = services_of(named=m.named, authorizer=NotX())
        call = call_of(DESCRIBE_TOPIC_PARTITIONS, 0, body, services=services)
        row = with_pages(DESCRIBE_TOPIC_PARTITIONS_ROW)
        answer = await row.answered(call)
        frame = b"".join(response_frame(DESCRIBE_TOPIC_PARTITIONS, 0, 1, answer))
        return read_response(DESCRIBE_TOPIC_PARTITIONS, 0, frame[4:])[1]


async def test_named_topics_are_sorted_and_each_once(catalog: SqliteCatalog) -> None:
    create(catalog, "b", 2)
    create(catalog, "a", 1)
    asked = await ask(catalog, ["b", "a", "none", "b", "a b"])
    assert shown(asked) == ([("a", 0, [0]), ("a b", 17, []), ("b", 0, [0, 1]), ("none", 3, [])], None)
    assert {row["topic_authorized_operations"] for row in asked["topics"]} == {3576}
    assert asked["topics"][0]["partitions"][0]["eligible_leader_replicas"] == []


async def test_a_page_of_named_topics_ends_with_a_cursor(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 3)
    create(catalog, "b", 1)
    names = ["a", "b", "none"]
    assert shown(await ask(catalog, names, 2)) == ([("a", 0, [0, 1])], ("a", 2))
    assert shown(await ask(catalog, names, 2, ("a", 2))) == ([("a", 0, [2]), ("b", 0, [0])], ("none", 0))
    assert shown(await ask(catalog, names, 2, ("none", 0))) == ([("none", 3, [])], None)
    assert shown(await ask(catalog, names, 3)) == ([("a", 0, [0, 1, 2])], ("b", 0))
    assert shown(await ask(catalog, names, 0)) == ([("a", 0, [0])], ("a", 1))
    assert shown(await ask(catalog, ["a", "b"], 9, ("a", 7))) == ([("a", 0, []), ("b", 0, [0])], None)


async def test_a_cursor_that_cannot_be_is_refused(catalog: SqliteCatalog) -> None:
    create(catalog, "a")
    for cursor in (("a", -1), ("b", 0)):
        answer = await ask(catalog, ["a", "a"], cursor=cursor)
        assert shown(answer) == ([("a", 42, []), ("a", 42, [])], None)
        assert answer["topics"][0]["topic_authorized_operations"] == NOT_REQUESTED
    assert shown(await ask(catalog, [], cursor=("a", -1))) == ([], None)


async def test_what_may_not_be_described_comes_behind(catalog: SqliteCatalog) -> None:
    for name in ("x1", "y", "x2", "z"):
        create(catalog, name)
    assert shown(await ask(catalog, ["x1", "x2", "y", "z"], 1)) == (
        [("y", 0, [0]), ("x1", 29, []), ("x2", 29, [])],
        ("z", 0),
    )


async def test_all_topics_in_pages(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 3)
    create(catalog, "b", 1)
    create(catalog, "__consumer_offsets", 1)
    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            asked: dict[str, Any] = {"topics": [], "response_partition_limit": 3}
            answer = await client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, asked)
            assert shown(answer) == ([("__consumer_offsets", 0, [0]), ("a", 0, [0, 1])], ("a", 2))
            answer = await client.ask(
                DESCRIBE_TOPIC_PARTITIONS, 0, {**asked, "cursor": answer["next_cursor"]}
            )
            assert shown(answer) == ([("a", 0, [2]), ("b", 0, [0])], None)


async def test_a_listing_that_fails_closes_the_connection(tmp_path: Path) -> None:
    def fails() -> TopicListingResult:
        raise RuntimeError("no")

    async with kafka_broker(tmp_path, plugins={"p": PluginOf(list_topics=fails)}) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            answer = await client.ask(DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": "a"}]})
            assert shown(answer) == ([("a", -1, [])], None)
            client.send(DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": []})
            assert await client.message() == b""
