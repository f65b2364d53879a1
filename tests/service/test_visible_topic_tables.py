"""All topics that an asker may see, as a Kafka client has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import Details, ListingRequest, TopicListingResult
from broker_core.access import Authorization
from broker_core.catalog import SqliteCatalog
from broker_core.errors import ListingFailed
from broker_core.listing.listing import Listing
from broker_core.listing.topic_table import TopicRow, TopicTable
from broker_core.memory import Permit
from broker_core.pipeline import Answer, Pipeline
from broker_core.servers.kafka.topics.listed_topics import ListedTopics
from broker_core.settings import AuthorizationRule, AuthorizationSettings
from broker_core.wire.kafka.topic_fragments import metadata_family
from tests.support.kafka_acls import AllowAll
from tests.support.kafka_topics import OnlyA, caller, create, kafka_topics, names, rows
from tests.support.plugins import PluginOf

BASE = "persistent://public/default/"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "catalog.sqlite") as opened:
        yield opened


async def test_topics_of_the_catalogue_with_partitions_as_one(catalog: SqliteCatalog) -> None:
    made = create(catalog, "orders", 3)
    create(catalog, "plain")
    create(catalog, "not for kafka")
    async with kafka_topics(catalog) as m:
        visible = await m.topics.of(caller())
        assert names(visible) == ["orders", "plain"]
        assert rows(visible)[0] == TopicRow(b"orders", 3, made.topic_id.bytes)
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
        properties_only = await m.topics.all_encoded(caller(), metadata_family(12, 1))
        assert bytes(properties_only.pieces[0])[-5:] == b"\x80\0\0\0\0"


async def test_a_listing_that_changes_while_its_table_is_read_is_listed_again(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, "a")
    read: list[Listing] = []
    async with kafka_topics(catalog) as m:
        tables = m.lister.topic_tables()
        topics = ListedTopics(m.pipeline, AllowAll(), tables)
        table_of = type(tables).of

        async def of(_tables: object, listing: Listing) -> tuple[TopicTable, bool] | None:
            read.append(listing)
            if len(read) == 1:
                create(catalog, "b")  # a table of the listed version can no longer be read
            return await table_of(tables, listing)

        monkeypatch.setattr(type(tables), "of", of)
        assert names(await topics.of(caller())) == ["a", "b"]
        assert list(map(len, read)) == [1, 2]
        assert m.pipeline.questions.most_frequent()[0].count == 1  # once, as it was asked
        create(catalog, "c")
        assert names(await topics.of(caller())) == ["a", "b", "c"]
        assert m.pipeline.questions.most_frequent()[0].count == 2


async def test_rules_that_come_before_topics_which_are_listed_again_hold_for_them(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, "a")
    rule = AuthorizationRule(
        roles=("alice",), namespaces=("public/default",), topics=("a",), actions=("list",)
    )
    read: list[int] = []
    async with kafka_topics(catalog) as m:
        tables = m.lister.topic_tables()
        table_of = type(tables).of

        async def of(_tables: object, listing: Listing) -> tuple[TopicTable, bool] | None:
            read.append(len(listing))
            if len(read) == 1:
                m.pipeline.authorization = Authorization(AuthorizationSettings(rules=(rule,)))
                create(catalog, "b")
            return await table_of(tables, listing)

        monkeypatch.setattr(type(tables), "of", of)
        topics = ListedTopics(m.pipeline, AllowAll(), tables)
        assert names(await topics.of(caller("alice"))) == ["a"]
    assert read == [1, 2]


async def test_a_plugin_that_comes_while_a_table_is_read_is_asked(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(catalog, "a")
    answers: list[Answer] = []
    held: list[list[Permit | None]] = []

    def list_topics() -> TopicListingResult:
        held.append([answer.permit for answer in answers])
        return TopicListingResult.success([f"{BASE}other"])

    async with kafka_topics(catalog, {"p": PluginOf(list_topics=list_topics)}) as m:
        hook = m.pipeline.dispatcher.describe_hook
        known, given = type(hook).plugins, Pipeline.answer
        calls = iter([()])

        async def answer(pipeline: Pipeline, request: ListingRequest, **more: Any) -> Answer:
            answers.append(await given(pipeline, request, **more))
            return answers[-1]

        monkeypatch.setattr(type(hook), "plugins", lambda it, namespace: next(calls, known(it, namespace)))
        monkeypatch.setattr(Pipeline, "answer", answer)
        assert names(await m.topics.of(caller())) == ["other"]
    assert held == [
        [],
        [None],
    ]  # the memory of the first answer is given back before the second one needs some


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
        assert rows(visible) == [TopicRow(b"x", 4, b"1" * 16), TopicRow(b"y", 1, bytes(16))]


async def test_a_listing_that_fails_is_no_listing(catalog: SqliteCatalog) -> None:
    def fails() -> TopicListingResult:
        raise RuntimeError("no")

    async with kafka_topics(catalog, {"p": PluginOf(list_topics=fails)}) as m:
        with pytest.raises(ListingFailed):
            await m.topics.of(caller())


async def test_topics_whose_names_kafka_cannot_have_are_counted(catalog: SqliteCatalog) -> None:
    create(catalog, "a b")
    create(catalog, "a")
    async with kafka_topics(catalog) as m:
        await m.topics.of(caller())
        assert m.topics.every.left_out == {caller().namespace: 1}
