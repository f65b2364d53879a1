"""What a topic is to an asker: the two orders of decisions, and what each step says."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import Cause, Details, ListingRequest, NamespaceName, TopicListingResult
from broker_core.access.asker import Access, Asker, Refused
from broker_core.catalog import CatalogUnusable, SqliteCatalog
from broker_core.errors import ListingFailed
from broker_core.names import TopicName
from broker_core.service import REFUSED_BY_ACLS, Found, TopicAsker
from tests.support.finding import BASE, Finding, finding, topic
from tests.support.pipelines import NAMESPACE
from tests.support.plugins import PluginOf
from tests.support.topic_plugins import hides


def asked(**fields: Any) -> TopicAsker:
    return TopicAsker(**{"asker": Asker(role="alice"), "namespace": NAMESPACE, **fields})


def word(found: Found) -> str | Cause:
    """What became of a topic, in a word."""
    if found.failure is not None:
        return "acls" if found.failure is REFUSED_BY_ACLS else found.failure.cause
    return "there" if found.exists else "missing"


async def by_name(there: Finding, *locals_: str, **fields: Any) -> list[str | Cause]:
    found = await there.find.by_name(asked(**fields), [topic(each) for each in locals_])
    assert [each.name for each in found] == [topic(each) for each in locals_]
    return [word(each) for each in found]


async def by_id(there: Finding, *ids: uuid.UUID, **fields: Any) -> list[str | Cause]:
    return [word(each) for each in await there.find.by_id(asked(**fields), ids)]


def refuses(part: str, cause: Cause = Cause.DENIED) -> PluginOf:
    """A gate that refuses topics of such names."""

    def authorize(access: Access) -> Refused | None:
        return Refused("no", cause) if access.topic is not None and part in access.topic.local else None

    return PluginOf(authorize=authorize)


def no_acl(part: str) -> Callable[[TopicName], bool]:
    return lambda asked_for: part not in asked_for.local


#: Each of these is refused, missing or hidden as the letters of its name say, at once.
NAMES = ["x", "xA", "xG", "xM", "xAG", "xAM", "xGM", "xAGM"]


async def test_by_name_what_is_refused_is_so_whether_it_exists_or_not() -> None:
    async with finding({"gate": refuses("G"), "mask": hides("M")}, NAMES) as there:
        absent = [name.replace("x", "y") for name in NAMES]
        for names, plain in ((NAMES, "there"), (absent, "missing")):
            assert await by_name(there, *names, allowed=no_acl("A")) == [
                plain,
                "acls",
                Cause.DENIED,
                "missing",
                "acls",
                "acls",
                Cause.DENIED,
                "acls",
            ]


async def test_by_id_what_is_hidden_is_as_what_is_not_there_whatever_else_refuses_it() -> None:
    async with finding({"gate": refuses("G"), "mask": hides("M")}, NAMES) as there:
        ids = [there.catalog.topic(topic(name)).topic_id for name in NAMES]  # type: ignore[union-attr]
        assert await by_id(there, *ids, uuid.uuid4(), allowed=no_acl("A")) == [
            "there",
            "acls",
            Cause.DENIED,
            "missing",
            "acls",
            "missing",
            "missing",
            "missing",
            "missing",
        ]
        hidden, unknown = await there.find.by_id(asked(), [ids[3], uuid.uuid4()])
        assert hidden == unknown == Found(None)


@pytest.mark.parametrize("cause", [Cause.UNAVAILABLE, Cause.DENIED])
async def test_a_gate_that_fails_tells_nothing_of_a_hidden_id(cause: Cause) -> None:
    async with finding({"gate": refuses("", cause), "mask": hides("M")}, ["M", "x"]) as there:
        ids = [there.catalog.topic(topic(name)).topic_id for name in ("M", "x")]  # type: ignore[union-attr]
        assert await by_id(there, *ids) == ["missing", cause]


async def test_the_right_is_asked_by_its_word_for_each_topic_or_once_for_the_namespace() -> None:
    questions: list[Access] = []

    def authorize(access: Access) -> None:
        questions.append(access)

    gate = PluginOf(authorize=authorize)
    async with finding({"gate": gate}, ["a"]) as there:
        assert await by_name(there, "a", "b") == ["there", "missing"]
        assert await by_name(there, "a", "b", action="list", of_namespace=True) == ["there", "missing"]
        assert await by_name(there, "a", action=None) == ["there"]
    assert [(each.action, each.topic and each.topic.local) for each in questions] == [
        ("describe", "a"),
        ("describe", "b"),
        ("list", None),
    ]


async def test_a_refusal_for_the_namespace_is_one_of_each_topic() -> None:
    gate = PluginOf(authorize=lambda: Refused("no"))
    async with finding({"gate": gate}, ["a"]) as there:
        assert await by_name(there, "a", "b", of_namespace=True) == [Cause.DENIED] * 2


async def test_names_of_the_catalogue_their_partitions_and_system_topics() -> None:
    async with finding(names=["orders-partition-2-partition-4"]) as there:
        made = there.create("orders", 3)
        there.create("__change_events")
        names = ["orders", "orders-partition-2", "orders-partition-3", "__change_events", "none"]
        found = await there.find.by_name(asked(), [topic(name) for name in names])
        assert [(each.exists, each.partitions, each.record and each.record.name.local) for each in found] == [
            (True, 3, "orders"),
            (True, 5, "orders"),
            (False, 0, None),
            (True, 0, "__change_events"),
            (False, 0, None),
        ]
        assert found[0].record == made
        assert await by_name(there, *names, can_have=lambda each: not each.is_system) == [
            "there",
            "there",
            "missing",
            "missing",
            "missing",
        ]
        # The name of a topic with partitions may be that of a partition too; each has its own number.
        assert (found[1].partitions, found[1].record) == (5, made)


async def test_ids_are_looked_for_in_all_namespaces_or_in_one_as_a_protocol_can_have_them() -> None:
    async with finding(names=["a"]) as there:
        ids = [there.catalog.topic(topic("a")).topic_id]  # type: ignore[union-attr]
        ids += [there.catalog.create(TopicName("persistent", NamespaceName("t", "o"), "a")).topic_id]
        ids += [there.catalog.create(TopicName("non-persistent", NAMESPACE, "a")).topic_id]
        assert await by_id(there, *ids, namespace=None) == ["there"] * 3
        assert await by_id(there, *ids) == ["there", "missing", "missing"]
        own = {"can_have": lambda each: str(each).startswith(BASE)}
        assert await by_id(there, *ids, ids[0], **own) == ["there", "missing", "missing", "there"]
        there.catalog.delete(topic("a"))
        there.create("a")
        assert await by_id(there, ids[0]) == ["missing"], "another topic has the name"


async def test_many_are_found_in_slices_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.service.find_topics._READ", 7)
    async with finding({"mask": hides("5")}) as there:
        made = {f"t{number}": there.create(f"t{number}", number) for number in range(1, 40)}
        names = [f"t{number}" for number in range(39, 0, -1)] + ["none"]
        expected = ["missing" if "5" in name or name == "none" else "there" for name in names]
        assert await by_name(there, *names) == expected
        ids = [made[name].topic_id for name in names[:-1]] + [uuid.uuid4()]
        assert await by_id(there, *ids) == expected


@pytest.mark.parametrize("by", ["name", "id"])
async def test_a_catalogue_that_cannot_be_read_is_a_failure_of_each(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unusable(*_: object) -> None:
        raise CatalogUnusable("disk full")

    async with finding({"gate": refuses("G")}) as there:
        for read in ("found", "topics_by_id"):
            monkeypatch.setattr(type(there.catalog), read, unusable)
        monkeypatch.setattr(there.made.lister, "read_now", lambda _: None)
        if by == "name":
            assert await by_name(there, "a", "G", "b") == [Cause.CATALOG, Cause.DENIED, Cause.CATALOG]
        else:
            assert await by_id(there, uuid.uuid4(), uuid.uuid4()) == [Cause.CATALOG] * 2


async def test_a_mask_that_fails_is_a_failure_of_what_it_is_asked_about() -> None:
    def fails() -> None:
        raise RuntimeError("no")

    async with finding({"mask": PluginOf(visible=fails)}, ["a"]) as there:
        assert await by_name(there, "a", "none") == [Cause.PLUGIN, "missing"]


async def test_topics_that_few_names_list_are_masked_together() -> None:
    columns: list[int] = []

    def visible(topics: pa.LargeStringArray) -> Any:
        columns.append(len(topics))
        return pc.or_(pc.ends_with(topics, "-1"), pc.ends_with(topics, "plain"))

    async with finding({"mask": PluginOf(visible=visible)}, ["plain", "hidden"]) as there:
        there.create("two", 2)
        there.create("one", 1)
        there.create("wide", 2000)
        names = ["plain", "two", "wide", "hidden", "one", "two-partition-0", "two-partition-1"]
        assert await by_name(there, *names) == [
            "there",
            "there",
            "there",
            "missing",
            "missing",
            "missing",
            "there",
        ]
    assert sorted(columns) == [7, 2000]


# -- where others than the catalogue say what there is


def lists(request: ListingRequest) -> TopicListingResult:
    """One topic that this plugin has, and what is wanted of it."""
    told = {"partitions": [2], "topic_id": [b"1" * 16], "configs": [{"a": "b"}], "properties": [None]}
    names = [f"{BASE}p-partition-{number}" for number in range(2)] + [f"{BASE}secret"]
    columns = {name: values for name, values in told.items() if name in request.wants}
    return TopicListingResult.success(names, details=Details.of([f"{BASE}p"], **columns))


async def test_a_plugin_that_lists_says_what_there_is_and_what_it_tells() -> None:
    async with finding({"p": PluginOf(list_topics=lists)}, ["c"]) as there:
        own = there.catalog.topic(topic("c"))
        assert own is not None
        wants = frozenset({"partitions", "topic_id", "configs", "properties"})
        p, c, partition = await there.find.by_name(
            asked(wants=wants), [topic("p"), topic("c"), topic("p-partition-1")]
        )
        assert (p.exists, p.partitions, p.record, c) == (True, 2, None, Found(topic("c")))
        assert {name: p.details[name] for name in wants & set(p.details)} == {
            "partitions": 2,
            "topic_id": b"1" * 16,
            "configs": {"a": "b"},
        }
        assert (partition.exists, partition.partitions) == (True, 0)
        first = uuid.UUID(bytes=b"1" * 16)
        by_id_ = await there.find.by_id(asked(), [first, own.topic_id, uuid.UUID(int=0)])
        assert [(word(each), each.name) for each in by_id_] == [
            ("there", topic("p")),
            ("missing", None),
            ("missing", None),
        ]
        # In whatever namespace it is, an id of the catalogue is not that of the plugin's topic.
        assert await by_id(there, own.topic_id, first, namespace=None) == ["missing", "missing"]


async def test_ids_that_a_plugin_tells_pass_masks_acls_and_gates_in_that_order() -> None:
    first = uuid.UUID(bytes=b"1" * 16)
    lister = PluginOf(list_topics=lists)
    async with finding({"p": lister, "gate": refuses("p")}) as there:
        assert await by_id(there, first) == [Cause.DENIED]
        assert await by_id(there, first, allowed=no_acl("p")) == ["acls"]
    async with finding({"p": lister, "gate": refuses("p"), "mask": hides("p-")}) as there:
        assert await by_id(there, first, allowed=no_acl("p")) == ["missing"]


async def test_no_right_to_list_is_needed_for_names_that_a_plugin_lists() -> None:
    def authorize(access: Access) -> Refused | None:
        return Refused("no") if access.action == "list" else None

    plugins = {"p": PluginOf(list_topics=lists), "gate": PluginOf(authorize=authorize)}
    async with finding(plugins) as there:
        assert await by_name(there, "p") == ["there"]
        assert await by_id(there, uuid.UUID(bytes=b"1" * 16)) == ["there"]


async def test_a_listing_that_fails_is_asked_for_once_and_fails_all_that_is_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker_core.service.find_topics._READ", 200)
    calls = 0

    def fails() -> TopicListingResult:
        nonlocal calls
        calls += 1
        raise ListingFailed("no time", cause=Cause.TIME)

    async with finding({"p": PluginOf(list_topics=fails), "gate": refuses("G")}) as there:
        names = ["G", *(f"t{number}" for number in range(450))]
        words = await by_name(there, *names)
        assert words[0] is Cause.DENIED
        assert set(words[1:]) == {Cause.TIME}
        assert calls == 2, "for more than are asked for by a pattern, and for the last ones"
        assert set(await by_id(there, uuid.uuid4(), uuid.uuid4())) == {Cause.TIME}


async def test_brokers_list_where_there_is_no_catalogue() -> None:
    names = ["x-partition-0", "x-partition-1", "y"]
    async with finding(brokers=names) as there:
        found = await there.find.by_name(asked(), [topic(name) for name in ("x", "y", "z", "x-partition-1")])
        assert [(each.exists, each.partitions) for each in found] == [
            (True, 2),
            (True, 0),
            (False, 0),
            (True, 0),
        ]
        assert await by_id(there, uuid.uuid4()) == ["missing"]
        assert there.find.now(asked(), [topic("x")]) is None
    async with finding({"mask": hides("-1")}, brokers=names) as there:
        assert await by_name(there, "x", "x-partition-1") == ["there", "missing"]


async def test_who_describes_and_does_not_list_says_the_number_of_what_the_catalogue_has() -> None:
    plugin = PluginOf(
        describe_topics=lambda request: Details.of(request.names, partitions=[9] * len(request.names))
    )
    async with finding({"gives": plugin}, ["a"]) as there:
        made = there.catalog.topic(topic("a"))
        assert made is not None
        (a,), (same,) = (
            await there.find.by_name(asked(), [topic("a")]),
            await there.find.by_id(asked(), [made.topic_id]),
        )
        assert (a.partitions, a.record) == (same.partitions, same.record) == (9, made)
        assert await by_name(there, "none") == ["missing"]
        assert there.find.now(asked(), [topic("a")]) is None


async def test_more_partitions_than_clients_count_are_an_error() -> None:
    async with finding(names=["most-partition-2147483646", "more-partition-2147483647"]) as there:
        assert await there.partitions("most") == 2**31 - 1
        with pytest.raises(ListingFailed, match="clients count 2147483647 at most") as caught:
            await there.partitions("more")
        assert caught.value.cause is Cause.INTERNAL


# -- at once


async def test_a_few_are_known_at_once_as_they_are_later() -> None:
    async with finding(names=["a", "xA"]) as there:
        names = [topic(name) for name in ("a", "xA", "none", "a-partition-0")]
        ids = [there.catalog.topic(name).topic_id for name in names[:2]] + [uuid.uuid4()]  # type: ignore[union-attr]
        question = asked(allowed=no_acl("A"))
        await asyncio.sleep(0)  # a turn of the loop that has time
        assert there.find.now(question, names) == await there.find.by_name(question, names)
        await asyncio.sleep(0)
        assert there.find.now(question, [], ids) == await there.find.by_id(question, ids)
        await asyncio.sleep(0)
        assert there.find.now(question, names * 3) is None
        there.made.lister.close()  # what reads at once
        await asyncio.sleep(0)
        assert there.find.now(question, names) is there.find.now(question, [], ids) is None
        assert await by_name(there, "a") == ["there"]


async def test_nothing_is_known_at_once_in_a_turn_without_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.concurrency.loop_turns.TURN_SECONDS", 0.0)
    async with finding(names=["a"]) as there:
        await asyncio.sleep(0)
        assert there.find.now(asked(), [topic("a")]) is not None  # the first in a turn
        assert there.find.now(asked(), [topic("a")]) is None


@pytest.mark.parametrize(
    "plugin",
    [hides("a"), refuses("a"), PluginOf(list_topics=lambda: TopicListingResult.success([]))],
    ids=["a mask", "a gate", "a lister"],
)
async def test_nothing_is_known_at_once_where_plugins_are_asked(plugin: PluginOf) -> None:
    async with finding({"p": plugin}, ["a"]) as there:
        await asyncio.sleep(0)
        assert there.find.now(asked(), [topic("a")]) is None
        assert there.find.now(asked(), [], [uuid.uuid4()]) is None


async def test_few_are_read_without_a_thread_and_many_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    many: list[int] = []
    read = SqliteCatalog.found

    def found(self: SqliteCatalog, names: Any) -> Any:
        many.append(len(names))
        return read(self, names)

    monkeypatch.setattr(SqliteCatalog, "found", found)
    async with finding(names=["a"]) as there:
        assert await by_name(there, *["a"] * 8) == ["there"] * 8
        assert many == []
        assert await by_name(there, *["a"] * 9) == ["there"] * 9
        assert many == [9]
