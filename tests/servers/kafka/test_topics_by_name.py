from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import Details, ListingRequest, TopicListingResult, TopicName
from broker_core.access.access import Access, Refused
from broker_core.catalog import SqliteCatalog
from broker_core.errors import Cause, ListingFailed
from broker_core.servers.kafka.authorizer import AllowAll
from broker_core.wire.kafka import ZERO_ID, ErrorCode
from tests.support.kafka_topics import caller, create, kafka_topics
from tests.support.plugins import PluginOf

BASE = "persistent://public/default/"


class NotX(AllowAll):
    """A topic ``x`` may not be described."""

    def allows(self, _call: Any, _operation: Any, _kind: Any, name: str) -> bool:
        return name != "x"


async def test_by_name_each_has_its_code(catalog: SqliteCatalog) -> None:
    made = create(catalog, "orders", 3)
    create(catalog, "x")
    create(catalog, "__change_events")
    create(catalog, "a b")
    async with kafka_topics(catalog, authorizer=NotX()) as m:
        names = [
            "orders",
            "x",
            "none",
            "a b",
            "orders-partition-0",
            "__change_events",
            "orders",
            "__transaction_state",
        ]
        rows = await m.topics.named(caller(), names)
        assert [row.name for row in rows] == names
        assert [int(row.error) for row in rows] == [0, 29, 3, 17, 3, 3, 0, 3]
        assert (rows[0].topic_id, rows[0].partitions, rows[0].record) == (made.topic_id, 3, made)
        assert [row.topic_id for row in rows[1:4]] == [ZERO_ID] * 3
        assert [row.internal for row in rows] == [False] * 7 + [True]


async def test_by_id_what_may_not_be_known_is_not_there(catalog: SqliteCatalog) -> None:
    def visible(topics: pa.LargeStringArray) -> pa.BooleanArray:
        return pc.not_equal(topics, f"{BASE}hidden")

    there = create(catalog, "orders", 3)
    hidden, illegal, denied = create(catalog, "hidden"), create(catalog, "a b"), create(catalog, "x")
    other = catalog.create(TopicName.parse("persistent://public/other/orders"))
    ids = [there.topic_id, hidden.topic_id, illegal.topic_id, denied.topic_id, other.topic_id, uuid.uuid4()]
    async with kafka_topics(catalog, {"mask": PluginOf(visible=visible)}, NotX()) as m:
        rows = await m.topics.by_ids(caller(), ids)
        assert [row.topic_id for row in rows] == ids
        assert [int(row.error) for row in rows] == [0, 100, 100, 29, 100, 100]
        assert [row.name for row in rows] == ["orders", None, None, None, None, None]
        [named] = await m.topics.named(caller(), ["hidden"])
        assert named.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        create(catalog, "hidden2")
        catalog.delete(there.name)
        create(catalog, "orders")
        [gone] = await m.topics.by_ids(caller(), [there.topic_id])
        assert gone.error is ErrorCode.UNKNOWN_TOPIC_ID


async def test_the_id_of_a_hidden_topic_is_unknown_where_acls_or_rules_refuse_it_too(
    catalog: SqliteCatalog,
) -> None:
    def visible(topics: pa.LargeStringArray) -> pa.BooleanArray:
        return pc.not_equal(topics, f"{BASE}x")

    def authorize(access: Access) -> Refused | None:
        return None if access.topic is None else Refused("not for you")

    hidden = create(catalog, "x")
    for plugins in (
        {"mask": PluginOf(visible=visible)},
        {"mask": PluginOf(visible=visible, authorize=authorize)},
    ):
        async with kafka_topics(catalog, plugins, NotX()) as m:
            [row] = await m.topics.by_ids(caller(), [hidden.topic_id])
            assert (row.name, row.error) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


async def test_a_gate_refuses_topics_by_their_names(catalog: SqliteCatalog) -> None:
    asked: list[Access] = []

    def authorize(access: Access) -> Refused | None:
        asked.append(access)
        refused = access.topic is not None and access.topic.local == "b"
        return Refused("not for you") if refused else None

    create(catalog, "a")
    denied = create(catalog, "b")
    async with kafka_topics(catalog, {"gate": PluginOf(authorize=authorize)}) as m:
        rows = await m.topics.named(caller("alice"), ["a", "b", "c"])
        assert [int(row.error) for row in rows] == [0, 29, 3]
        assert rows[1].message == "not for you"
        [row] = await m.topics.by_ids(caller(), [denied.topic_id])
        assert (row.error, row.name, row.topic_id) == (29, None, denied.topic_id)
    assert {(access.action, access.asker.role) for access in asked[:3]} == {("describe", "alice")}


async def test_where_a_plugin_lists_it_says_what_there_is(catalog: SqliteCatalog) -> None:
    def list_topics(request: ListingRequest) -> TopicListingResult:
        details = Details.of([f"{BASE}p"], partitions=[2], topic_id=[b"1" * 16]) if request.wants else None
        return TopicListingResult.success([f"{BASE}p-partition-0", f"{BASE}p-partition-1"], details=details)

    create(catalog, "c")
    async with kafka_topics(catalog, {"p": PluginOf(list_topics=list_topics)}) as m:
        rows = await m.topics.named(caller(), ["p", "c"])
        assert [(int(row.error), row.partitions) for row in rows] == [(0, 2), (3, 0)]
        assert rows[0].topic_id == uuid.UUID(bytes=b"1" * 16)
        rows = await m.topics.by_ids(caller(), [uuid.UUID(bytes=b"1" * 16), ZERO_ID, uuid.uuid4()])
        assert [(int(row.error), row.name) for row in rows] == [(0, "p"), (100, None), (100, None)]


async def test_a_failure_is_the_code_of_each(catalog: SqliteCatalog) -> None:
    def list_topics() -> TopicListingResult:
        raise ListingFailed("no time", cause=Cause.TIME)

    async with kafka_topics(catalog, {"p": PluginOf(list_topics=list_topics)}) as m:
        rows = await m.topics.named(caller(), ["a", "b"])
        assert {int(row.error) for row in rows} <= {-1, 7}
        [row] = await m.topics.by_ids(caller(), [ZERO_ID])
        assert (row.error in {-1, 7}, row.name) == (True, None)


async def test_many_are_read_in_a_thread_and_few_where_the_file_cannot_be_read_at_once(
    catalog: SqliteCatalog,
) -> None:
    ids = [create(catalog, f"t{number}", 1).topic_id for number in range(20)]
    async with kafka_topics(catalog) as m:
        for some in (ids, ids[:2]):
            rows = await m.topics.by_ids(caller(), some)
            assert [row.topic_id for row in rows] == some
            names = [row.name or "" for row in rows]
            assert [row.topic_id for row in await m.topics.named(caller(), names)] == some
        m.lister.close()  # what reads at once
        [row] = await m.topics.by_ids(caller(), ids[:1])
        assert (row.name, row.error) == ("t0", 0)
        [row] = await m.topics.named(caller(), ["t1"])
        assert row.topic_id == ids[1]


async def test_a_few_are_known_at_once_where_nobody_else_is_asked(catalog: SqliteCatalog) -> None:
    made = [create(catalog, name, 2).topic_id for name in ("orders", "x", "a b", "__change_events")]
    other = catalog.create(TopicName.parse("persistent://public/other/orders")).topic_id
    names = ["orders", "x", "none", "a b", "orders-partition-0", "__change_events", "__transaction_state"]
    ids = [*made, other, uuid.uuid4(), made[0]]
    async with kafka_topics(catalog, authorizer=NotX()) as m:
        await asyncio.sleep(0)  # a turn of the loop that has time
        assert m.topics.now(caller(), names, []) == await m.topics.named(caller(), names)
        await asyncio.sleep(0)
        assert m.topics.now(caller(), [], ids) == await m.topics.by_ids(caller(), ids)
        catalog.delete(TopicName.parse(f"{BASE}orders"))
        await asyncio.sleep(0)
        assert m.topics.now(caller(), names, []) == await m.topics.named(caller(), names)
        many = [f"t{number}" for number in range(9)]
        await asyncio.sleep(0)
        assert m.topics.now(caller(), many, []) is None
        m.lister.close()  # what reads at once
        assert m.topics.now(caller(), names, []) is None
        assert m.topics.now(caller(), [], ids) is None


async def test_nothing_is_known_at_once_in_a_turn_without_time(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.concurrency.loop_turn.TURN_SECONDS", 0.0)
    async with kafka_topics(catalog) as m:
        await asyncio.sleep(0)
        assert m.topics.now(caller(), ["a"], []) is not None  # the first in a turn
        assert m.topics.now(caller(), ["a"], []) is None


@pytest.mark.parametrize(
    "plugin",
    [
        PluginOf(visible=lambda topics: pc.equal(topics, "")),
        PluginOf(authorize=lambda access: Refused("no") if access.topic else None),
        PluginOf(list_topics=lambda: TopicListingResult.success([])),
    ],
    ids=["a mask", "a gate", "a lister"],
)
async def test_nothing_is_known_at_once_where_plugins_are_asked(
    catalog: SqliteCatalog, plugin: PluginOf
) -> None:
    topic_id = create(catalog, "a").topic_id
    async with kafka_topics(catalog, {"p": plugin}) as m:
        await asyncio.sleep(0)
        assert m.topics.now(caller(), ["a"], []) is None
        assert m.topics.now(caller(), [], [topic_id]) is None
