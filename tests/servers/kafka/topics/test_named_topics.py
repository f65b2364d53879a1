"""Topics that a client names: the rows of what the use case finds, each with its code."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker_core import Details, ListingRequest, TopicListingResult, TopicName
from broker_core.access.asker import Access, Refused
from broker_core.catalog import SqliteCatalog
from broker_core.kafka.acls.bindings import Operation
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.wire.kafka import DESCRIBE_CONFIGS, ZERO_ID, ErrorCode
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_serving import ask_once, kafka_broker
from tests.support.kafka_topics import caller, create, kafka_topics
from tests.support.plugins import PluginOf

BASE = "persistent://public/default/"


class NotX(AllowAll):
    """A topic ``x``, and an illegal name with one, may not be described."""

    enabled = True

    def allows(self, _call: Any, _operation: Any, _kind: Any, name: str) -> bool:
        return "x" not in name


async def test_by_name_each_has_its_code_at_once_and_later(catalog: SqliteCatalog) -> None:
    made = create(catalog, "orders", 3)
    for name in ("x", "__change_events", "a b"):
        create(catalog, name)
    async with kafka_topics(catalog, authorizer=NotX()) as m:
        names = ["orders", "x", "none", "a b", "x ", "orders-partition-0", "__change_events", "orders"]
        names += ["__transaction_state"]
        rows = await m.named.by_name(caller(), names)
        assert [row.name for row in rows] == names
        assert [int(row.error) for row in rows] == [0, 29, 3, 17, 29, 3, 3, 0, 3]
        assert (rows[0].topic_id, rows[0].partitions, rows[0].record) == (made.topic_id, 3, made)
        assert [row.topic_id for row in rows[1:4]] == [ZERO_ID] * 3
        assert [row.internal for row in rows] == [False] * 8 + [True]
        assert {row.message for row in rows} == {None}
        few = [name for name in names if name != "none"]
        await asyncio.sleep(0)  # a turn of the loop that has time
        assert m.named.now(caller(), few) == await m.named.by_name(caller(), few)
        (plain,) = await m.named.by_name(caller(), ["x"], operation=None)
        assert (plain.error, plain.partitions) == (0, 1)


async def test_by_id_what_may_not_be_known_is_not_there(catalog: SqliteCatalog) -> None:
    def visible(topics: pa.LargeStringArray) -> pa.BooleanArray:
        return pc.not_equal(topics, f"{BASE}hidden")

    there = create(catalog, "orders", 3)
    made = [create(catalog, name) for name in ("hidden", "a b", "x b", "x", "__change_events")]
    other = catalog.create(TopicName.parse("persistent://public/other/orders"))
    ids = [there.topic_id, *(each.topic_id for each in made), other.topic_id, uuid.uuid4()]
    async with kafka_topics(catalog, {"mask": PluginOf(visible=visible)}, NotX()) as m:
        rows = await m.named.by_id(caller(), ids)
        assert [row.topic_id for row in rows] == ids
        assert [int(row.error) for row in rows] == [0, 100, 100, 100, 29, 100, 100, 100]
        assert [row.name for row in rows] == ["orders", *[None] * 7]
    async with kafka_topics(catalog, authorizer=NotX()) as m:
        await asyncio.sleep(0)  # a turn of the loop that has time
        rows = await m.named.by_id(caller(), ids)
        assert [int(row.error) for row in rows] == [0, 0, 100, 100, 29, 100, 100, 100]
        assert m.named.now(caller(), (), ids) == rows


async def test_a_refusal_has_its_message_and_the_operation_and_the_action_are_those_of_the_request(
    catalog: SqliteCatalog,
) -> None:
    asked: list[Any] = []

    class Noting(AllowAll):
        enabled = True

        def allows(self, _call: Any, operation: Any, _kind: Any, name: str) -> bool:
            asked.append((operation, name))
            return True

    def authorize(access: Access) -> Refused:
        asked.append((access.action, access.asker.role, str(access.topic)))
        return Refused("not for you")

    denied = create(catalog, "b")
    async with kafka_topics(catalog, {"gate": PluginOf(authorize=authorize)}, Noting()) as m:
        rows = await m.named.by_name(caller("alice"), ["b"], operation=Operation.ALTER, action="admin")
        assert rows == [NamedTopic("b", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED, message="not for you")]
        (row,) = await m.named.by_id(caller(), [denied.topic_id])
        assert (row.error, row.name, row.topic_id, row.message) == (29, None, denied.topic_id, None)
    assert asked[:2] == [(Operation.ALTER, "b"), ("admin", "alice", f"{BASE}b")]


CONFIGS = {
    "a": {"retention.ms": "5", "nonsense": "1", "segment.ms": "no number"},
    "b.c": {},
    "unknown": None,
}


def list_topics(request: ListingRequest) -> TopicListingResult:
    topics = [BASE + name for name in CONFIGS]
    told = {"partitions": [2, 0, 0], "topic_id": [b"1" * 16, None, None], "configs": CONFIGS.values()}
    columns = {name: values for name, values in told.items() if name in request.wants}
    return TopicListingResult.success(topics, details=Details.of(topics, **columns) if columns else None)


async def test_a_topic_that_a_plugin_lists_has_what_it_tells(catalog: SqliteCatalog) -> None:
    create(catalog, "c")
    async with kafka_topics(catalog, {"p": PluginOf(list_topics=list_topics)}) as m:
        first = uuid.UUID(bytes=b"1" * 16)
        a, c, b = await m.named.by_name(caller(), ["a", "c", "b.c"])
        assert (a.error, a.topic_id, a.partitions, a.configs) == (0, first, 2, {})
        assert (int(c.error), b.partitions, b.topic_id) == (3, 1, ZERO_ID)
        a, zero = await m.named.by_id(caller(), [first, ZERO_ID])
        assert (a.name, a.topic_id, int(zero.error)) == ("a", first, 100)


async def test_configs_that_kafka_would_take_are_told(catalog: SqliteCatalog) -> None:
    plugins = {"lister": PluginOf(list_topics=list_topics)}
    rows = [
        {"resource_type": 2, "resource_name": name, "configuration_keys": ["retention.ms", "nonsense"]}
        for name in CONFIGS
    ]
    async with kafka_broker(catalog.path.parent, plugins=plugins) as broker:
        answer = await ask_once(broker, DESCRIBE_CONFIGS, 4, {"resources": rows})
    told = {row["resource_name"]: [each["value"] for each in row["configs"]] for row in answer["results"]}
    assert told == {"a": ["5"], "b.c": ["604800000"], "unknown": ["604800000"]}


async def test_a_plugin_that_fails_is_an_error_of_its_topics(catalog: SqliteCatalog) -> None:
    def failing() -> TopicListingResult:
        raise RuntimeError("no configs today")

    rows = [{"resource_type": 2, "resource_name": "a", "configuration_keys": None}]
    async with kafka_broker(catalog.path.parent, plugins={"lister": PluginOf(list_topics=failing)}) as broker:
        answer = await ask_once(broker, DESCRIBE_CONFIGS, 4, {"resources": rows})
    assert [(row["error_code"], row["configs"]) for row in answer["results"]] == [(-1, [])]
