from __future__ import annotations

import asyncio
from typing import Any

from broker_core import Details
from broker_core.catalog import SqliteCatalog
from broker_core.wire.kafka import CREATE_PARTITIONS, Fields
from tests.support.kafka_serving import ask_once, kafka_broker
from tests.support.kafka_topics import changing, create
from tests.support.plugins import PluginOf


def _request(*rows: tuple[str, int], assignments: Any = None, **fields: Any) -> Fields:
    topics = [{"name": name, "count": count, "assignments": assignments} for name, count in rows]
    return {"topics": topics, "timeout_ms": 10_000, **fields}


async def _ask(catalog: SqliteCatalog, request: Fields, **more: Any) -> dict[str, tuple[int, str | None]]:
    async with kafka_broker(catalog.path.parent, **more) as broker:
        rows = (await ask_once(broker, CREATE_PARTITIONS, 3, request))["results"]
    return {row["name"]: (row["error_code"], row["error_message"]) for row in rows}


async def test_topics_get_more_partitions_and_the_others_say_why_not(catalog: SqliteCatalog) -> None:
    a, b = create(catalog, "a", 1), create(catalog, "b", 3)
    told = await _ask(catalog, _request(("a", 4), ("b", 2), ("none", 2), ("a b", 2)))
    assert told == {
        "a": (0, None),
        "b": (37, "The topic b currently has 3 partition(s); 2 would not be an increase."),
        "none": (3, None),
        "a b": (3, None),
    }
    assert (catalog.partitions(a.name), catalog.partitions(b.name)) == (4, 3)


async def test_of_requests_at_once_that_ask_for_as_many_one_adds_partitions(catalog: SqliteCatalog) -> None:
    made = create(catalog, "a", 1)
    async with kafka_broker(catalog.path.parent) as broker:
        answers = await asyncio.gather(
            *(ask_once(broker, CREATE_PARTITIONS, 3, _request(("a", count))) for count in (2, 2, 2, 2))
        )
    told = [(row["error_code"], row["error_message"]) for answer in answers for row in answer["results"]]
    assert sorted(told, key=str) == [(0, None), *[(37, "Topic already has 2 partition(s).")] * 3]
    assert catalog.partitions(made.name) == 2


async def test_the_catalogue_counts_partitions_whatever_a_plugin_describes(catalog: SqliteCatalog) -> None:
    made = create(catalog, "a", 3)
    plugin = PluginOf(describe_topics=lambda request: Details.of(request.names, partitions=[9]))
    told = await _ask(catalog, _request(("a", 4)), plugins={"p": plugin})
    assert (told["a"], catalog.partitions(made.name)) == ((0, None), 4)


async def test_a_topic_without_partitions_stays_one(catalog: SqliteCatalog) -> None:
    made = create(catalog, "plain")
    assert (await _ask(catalog, _request(("plain", 2))))["plain"][0] == 44
    assert (await _ask(catalog, _request(("plain", 2), validate_only=True)))["plain"][0] == 44
    assert (await _ask(catalog, _request(("plain", 1))))["plain"] == (37, "Topic already has 1 partition(s).")
    assert catalog.topic(made.name) == made


async def test_new_partitions_can_be_assigned_to_the_one_node(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 1)
    asked = [{"broker_ids": [1]}, {"broker_ids": [9]}]
    assert (await _ask(catalog, _request(("a", 3), assignments=asked)))["a"][0] == 39
    assert (await _ask(catalog, _request(("a", 4), assignments=asked)))["a"][0] == 39
    assert (await _ask(catalog, _request(("a", 2), assignments=asked[:1])))["a"] == (0, None)


async def test_partitions_of_one_request_are_bounded_and_names_are_given_once(catalog: SqliteCatalog) -> None:
    for name in ("a", "b"):
        create(catalog, name, 1)
    told = await _ask(catalog, _request(("a", 5001), ("b", 5002), validate_only=True))
    assert told == {"a": (0, None), "b": (-1, None)}
    assert await _ask(catalog, _request(("a", 2), ("a", 3))) == {"a": (42, "Duplicate topic name.")}


async def test_how_many_there_are_is_for_clients_that_may_list(catalog: SqliteCatalog) -> None:
    create(catalog, "a", 47)
    asked = [{"broker_ids": [1]}]
    for request, said in (
        (_request(("a", 47)), (37, "47 would not be an increase.")),
        (_request(("a", 3)), (37, "3 would not be an increase.")),
        (
            _request(("a", 50), assignments=asked),
            (39, "Attempted to add partitions, but only 1 assignment(s) were specified."),
        ),
    ):
        assert (await _ask(catalog, request, tables=changing()))["a"] == said
