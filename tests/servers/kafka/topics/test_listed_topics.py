from __future__ import annotations

import gc
from typing import Any

import numpy as np

from broker_core import ListingRequest
from broker_core.catalog import SqliteCatalog
from broker_core.listing.topic_table import TopicRow, TopicTable
from broker_core.servers.kafka.topics.listed_topics import (
    ListedTopics,
    copied_bytes,
    fragments,
    is_rendered,
    rendered,
)
from broker_core.service import VisibleTopics
from broker_core.settings import LimitsSettings
from broker_core.wire.kafka import Encoded
from broker_core.wire.kafka.topic_fragments import LISTED_FAMILY, Family, metadata_family
from tests.support.eventually import eventually
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_topics import OnlyA, caller, create, kafka_topics, names, rows
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made
from tests.support.topic_chunks import chunk_of

BASE = "persistent://public/default/"


async def test_internal_topics_are_left_out_on_request(catalog: SqliteCatalog) -> None:
    create(catalog, "__consumer_offsets")
    create(catalog, "a")
    async with kafka_topics(catalog) as m:
        every = await m.topics.all_encoded(caller(), LISTED_FAMILY)
        some = await m.topics.all_encoded(caller(), LISTED_FAMILY, internal=False)
        assert (every.count, some.count) == (2, 1)
        assert b"".join(map(bytes, some.pieces)) == b"\0\1a\0"


async def test_tables_and_what_is_encoded_have_permits_of_the_snapshots(catalog: SqliteCatalog) -> None:
    for name in ("a", "b"):
        create(catalog, name, 3)
    async with kafka_topics(catalog) as m:
        await m.pipeline.answer(ListingRequest(caller().namespace))
        listed = m.snapshots.acquired
        visible = await m.topics.of(caller())
        with_table = m.snapshots.acquired
        assert with_table == listed + visible.table.nbytes
        who = caller()
        for _ in range(2):
            await m.topics.all_encoded(who, metadata_family(12, 1))
            assert m.snapshots.acquired == with_table + sum(
                each.nbytes for each in rendered(visible, metadata_family(12, 1))
            )
        assert not who.held


async def test_what_has_no_room_is_held_for_the_answer_alone(catalog: SqliteCatalog) -> None:
    for number in range(500):
        create(catalog, f"topic-{number:03d}")
    async with kafka_topics(catalog, limits=LimitsSettings(snapshots=70_000)) as m:
        who = caller()
        encoded = await m.topics.all_encoded(who, metadata_family(12, 1))
        held = sum(permit.count for permit in who.held)
        assert held >= sum(map(len, encoded.pieces))
        assert m.pipeline.permits.heap.acquired == held
        assert m.snapshots.acquired <= 70_000
        who.release()
        assert m.pipeline.permits.heap.acquired == 0
        assert (await m.topics.all_encoded(caller(), metadata_family(12, 1))).pieces == encoded.pieces


async def test_copies_for_one_caller_are_held_until_the_answer_has_left(catalog: SqliteCatalog) -> None:
    create(catalog, "a")
    create(catalog, "b")
    async with kafka_topics(catalog, authorizer=OnlyA()) as m:
        who = caller()
        encoded = await m.topics.all_encoded(who, metadata_family(12, 1))
        assert sum(permit.count for permit in who.held) >= sum(map(len, encoded.pieces)) > 0


async def test_what_an_answer_shares_lives_as_long_as_the_answer(catalog: SqliteCatalog) -> None:
    create(catalog, "a")
    async with kafka_topics(catalog) as m:
        who = caller()
        await m.topics.all_encoded(who, LISTED_FAMILY)
        await m.topics.of(caller())
        before = m.snapshots.acquired
        for name in ("b", "c"):
            create(catalog, name)
            await m.topics.all_encoded(caller(), LISTED_FAMILY)
        [pinned] = who.pinned
        grown = m.snapshots.acquired
        assert grown > before
        del pinned
        who.release()

        def is_free() -> bool:  # a thread may have it for a moment yet
            gc.collect()
            m.lister_leases.settle()
            return m.snapshots.acquired < grown

        await eventually(is_free)


async def test_before_a_cluster_topics_are_those_that_brokers_list_and_have_no_ids() -> None:
    lister = MemoryLister([f"{BASE}x-partition-{number}" for number in range(3)] + [f"{BASE}y", f"{BASE}a b"])
    async with made(lister) as m:
        topics = ListedTopics(m.pipeline, AllowAll(), None)
        who = caller()
        visible = await topics.of(who)
        assert rows(visible) == [TopicRow(b"x", 3, bytes(16)), TopicRow(b"y", 1, bytes(16))]
        assert topics.every.left_out == {who.namespace: 1}
        encoded = await topics.all_encoded(who, metadata_family(13, 1))
        assert encoded.count == 2
        lister.change([f"{BASE}new"])
        assert names(await topics.of(who)) == ["new"]
        who.release()


TABLE = TopicTable([chunk_of({"__consumer_offsets": 1, "a": 1}), chunk_of({"b": 2, "c": 3})])


def encoded(visible: VisibleTopics, family: Family, operations: Any = None) -> Encoded:
    return fragments(visible, family, rendered(visible, family), operations)


def joined(visible: VisibleTopics) -> bytes:
    return b"".join(map(bytes, encoded(visible, LISTED_FAMILY).pieces))


def test_a_mask_leaves_topics_out() -> None:
    visible = VisibleTopics(TABLE, [None, np.array([False, True])])
    assert visible.count == encoded(visible, LISTED_FAMILY).count == 3
    assert joined(visible) == b"\0\x12__consumer_offsets\1\0\1a\0\0\1c\0"


def test_what_is_rendered_is_known() -> None:
    table = TopicTable([chunk_of({"a": 1})])
    visible, family = VisibleTopics(table, [None]), metadata_family(12, 1)
    assert not is_rendered(visible, family)
    encoded(visible, family)
    assert is_rendered(visible, family)
    assert is_rendered(VisibleTopics(TopicTable(()), []), family)


def test_bits_of_operations_are_those_of_the_caller() -> None:
    table = TopicTable([chunk_of({"a": 1, "b": 1})])
    visible = VisibleTopics(table, [np.array([False, True])])
    row = encoded(visible, metadata_family(12, 1, 3576), [np.array([1, 2], np.int32)])
    assert bytes(row.pieces[0])[-5:] == b"\0\0\0\2\0"


def test_only_what_is_masked_or_has_other_bits_is_copied() -> None:
    visible = VisibleTopics(TABLE, [None, np.array([False, True])])
    chunks = rendered(visible, LISTED_FAMILY)
    assert copied_bytes(visible, chunks) == len(chunks[1].data)
    assert copied_bytes(visible, chunks, [np.zeros(2, np.int32), None]) == sum(
        len(each.data) for each in chunks
    )
