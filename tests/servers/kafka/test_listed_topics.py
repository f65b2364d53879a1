from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import Details, ListingRequest, TopicListingResult
from broker_core.catalog import SqliteCatalog
from broker_core.errors import ListingFailed
from broker_core.kafka.acls.bindings import Operation
from broker_core.listing.listing import Listing
from broker_core.listing.topic_table import TopicChunk, TopicTable
from broker_core.pipeline import Answer, Pipeline
from broker_core.servers.kafka.authorizer import AllowAll
from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.listed_topics import ListedTopics
from broker_core.settings import LimitsSettings
from broker_core.wire.kafka.topic_fragments import LISTED_FAMILY, metadata_family
from tests.support.kafka_topics import caller, create, kafka_topics, names, rows
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

BASE = "persistent://public/default/"


async def test_topics_of_the_catalogue_with_partitions_as_one(catalog: SqliteCatalog) -> None:
    made = create(catalog, "orders", 3)
    create(catalog, "plain")
    create(catalog, "not for kafka")
    async with kafka_topics(catalog) as m:
        visible = await m.topics.of(caller())
        assert names(visible) == ["orders", "plain"]
        assert rows(visible)[0] == (b"orders", 3, made.topic_id.bytes)
        create(catalog, "a")
        assert names(await m.topics.of(caller())) == ["a", "orders", "plain"]


async def test_a_topic_is_visible_where_a_mask_leaves_one_of_its_names(catalog: SqliteCatalog) -> None:
    asked: list[ListingRequest] = []

    def visible(request: ListingRequest, topics: pa.LargeStringArray) -> pa.BooleanArray:
        asked.append(request)
        return pc.or_(pc.ends_with(topics, "-1"), pc.ends_with(topics, "/plain"))

    create(catalog, "orders", 3)
    create(catalog, "single", 1)
    create(catalog, "plain")
    async with kafka_topics(catalog, {"mask": PluginOf(visible=visible)}) as m:
        found = await m.topics.of(caller("alice"))
        assert names(found) == ["orders", "plain"]
        assert found.count == 2
    assert (asked[0].asker.transport, asked[0].asker.role, dict(asked[0].properties)) == (
        "kafka",
        "alice",
        {},
    )


class OnlyA(AllowAll):
    """Topics that begin with an ``a`` may be described."""

    enabled = True

    def chunk_mask(self, _call: Caller, _operation: Operation, chunk: TopicChunk) -> np.ndarray | None:
        return np.array([name.startswith(b"a") for name in chunk.names.to_pylist()])

    def chunk_operations(self, _call: Caller, chunks: Sequence[TopicChunk]) -> list[np.ndarray | None]:
        return [np.full(len(chunk), 256, np.int32) for chunk in chunks]


async def test_acls_narrow_what_plugins_leave(catalog: SqliteCatalog) -> None:
    def visible(topics: pa.LargeStringArray) -> pa.BooleanArray:
        return pc.not_equal(topics, f"{BASE}ab")

    for name in ("aa", "ab", "b"):
        create(catalog, name)
    async with kafka_topics(catalog, {"mask": PluginOf(visible=visible)}, OnlyA()) as m:
        assert names(await m.topics.of(caller())) == ["aa"]
        family = metadata_family(12, 1, 3576)
        told = await m.topics.all_encoded(caller(), family, operations=True)
        assert told.count == 1
        assert bytes(told.pieces[0])[-5:] == b"\0\0\1\0\0"
        untold = await m.topics.all_encoded(caller(), metadata_family(12, 1))
        assert bytes(untold.pieces[0])[-5:] == b"\x80\0\0\0\0"


async def test_a_listing_that_changes_while_it_is_read_is_replaced(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, "a")
    answers: list[Answer] = []
    async with kafka_topics(catalog) as m:
        tables = m.lister.topic_tables()
        topics = ListedTopics(m.pipeline, AllowAll(), tables)
        given, read = Pipeline.answer_now, type(tables).of

        def answer_now(
            pipeline: Pipeline, request: ListingRequest, *, tentative: bool = False
        ) -> Answer | None:
            answer = given(pipeline, request, tentative=tentative)
            answers.extend([] if answer is None else [answer])
            return answer

        async def of(_tables: object, listing: Listing) -> TopicTable | None:
            if len(answers) == 1:
                return None  # as after a change
            return await read(tables, listing)

        assert names(await topics.of(caller())) == ["a"]
        monkeypatch.setattr(Pipeline, "answer_now", answer_now)
        monkeypatch.setattr(type(tables), "of", of)
        counted = m.pipeline.questions.most_asked()[0].count
        assert names(await topics.of(caller())) == ["a"]
        assert m.pipeline.questions.most_asked()[0].count == counted + 1  # once, as it was asked
    assert [answer.replaced for answer in answers] == [True, False]


async def test_internal_topics_are_left_out_on_request(catalog: SqliteCatalog) -> None:
    create(catalog, "__consumer_offsets")
    create(catalog, "a")
    async with kafka_topics(catalog) as m:
        every = await m.topics.all_encoded(caller(), LISTED_FAMILY)
        some = await m.topics.all_encoded(caller(), LISTED_FAMILY, internal=False)
        assert (every.count, some.count) == (2, 1)
        assert b"".join(map(bytes, some.pieces)) == b"\0\1a\0"


async def test_what_a_plugin_lists_has_what_it_tells(catalog: SqliteCatalog) -> None:
    ids = [b"1" * 16, None]

    def list_topics(request: ListingRequest) -> TopicListingResult:
        listed = [f"{BASE}x-partition-{number}" for number in range(2)] + [f"{BASE}y"]
        wanted = {"partitions": [4, 0], "topic_id": ids}
        told = {name: values for name, values in wanted.items() if name in request.wants}
        return TopicListingResult.success(listed, details=Details.of([f"{BASE}x", f"{BASE}y"], **told))

    create(catalog, "hidden")
    async with kafka_topics(catalog, {"p": PluginOf(list_topics=list_topics)}) as m:
        visible = await m.topics.of(caller())
        assert rows(visible) == [(b"x", 4, b"1" * 16), (b"y", 1, bytes(16))]


async def test_a_listing_that_fails_is_no_listing(catalog: SqliteCatalog) -> None:
    def fails() -> TopicListingResult:
        raise RuntimeError("no")

    async with kafka_topics(catalog, {"p": PluginOf(list_topics=fails)}) as m:
        with pytest.raises(ListingFailed):
            await m.topics.of(caller())


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
                each.nbytes for each in visible.rendered(metadata_family(12, 1))
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


async def test_topics_whose_names_kafka_cannot_have_are_counted(catalog: SqliteCatalog) -> None:
    create(catalog, "a b")
    create(catalog, "a")
    async with kafka_topics(catalog) as m:
        await m.topics.of(caller())
        assert m.topics.left_out == {caller().namespace: 1}


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
        assert topics.left_out == {who.namespace: 1}
        encoded = await topics.all_encoded(who, metadata_family(13, 1))
        assert encoded.count == 2
        lister.change([f"{BASE}new"])
        assert names(await topics.of(who)) == ["new"]
        who.release()
