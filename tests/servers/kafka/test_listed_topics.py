from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np

from broker_core import ListingRequest
from broker_core.catalog import SqliteCatalog
from broker_core.kafka.acls.bindings import Operation
from broker_core.listing.topic_table import TopicChunk
from broker_core.servers.kafka.authorizer import AllowAll
from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.encoded_topics import rendered
from broker_core.servers.kafka.listed_topics import ListedTopics
from broker_core.settings import LimitsSettings
from broker_core.wire.kafka.topic_fragments import LISTED_FAMILY, metadata_family
from tests.support.kafka_topics import caller, create, kafka_topics, names, rows
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made

BASE = "persistent://public/default/"


class OnlyA(AllowAll):
    """Topics that begin with an ``a`` may be described."""

    enabled = True

    def chunk_mask(self, _call: Caller, _operation: Operation, chunk: TopicChunk) -> np.ndarray | None:
        return np.array([name.startswith(b"a") for name in chunk.names.to_pylist()])

    def chunk_operations(self, _call: Caller, chunks: Sequence[TopicChunk]) -> list[np.ndarray | None]:
        return [np.full(len(chunk), 256, np.int32) for chunk in chunks]


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
        gc.collect()
        m.lister_leases.settle()
        assert m.snapshots.acquired < grown


async def test_before_a_cluster_topics_are_those_that_brokers_list_and_have_no_ids() -> None:
    lister = MemoryLister([f"{BASE}x-partition-{number}" for number in range(3)] + [f"{BASE}y", f"{BASE}a b"])
    async with made(lister) as m:
        topics = ListedTopics(m.pipeline, AllowAll(), None)
        who = caller()
        visible = await topics.of(who)
        assert rows(visible) == [(b"x", 3, bytes(16)), (b"y", 1, bytes(16))]
        assert topics.every.left_out == {who.namespace: 1}
        encoded = await topics.all_encoded(who, metadata_family(13, 1))
        assert encoded.count == 2
        lister.change([f"{BASE}new"])
        assert names(await topics.of(who)) == ["new"]
        who.release()
