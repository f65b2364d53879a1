"""Details in an answer: their source, and that they are always checked."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import DescribeRequest, Details, Page, TopicListingResult
from broker_core.errors import ListingFailed
from broker_core.pipeline import Answer
from broker_core.pipeline.listers import listing_details
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

BASE = "persistent://t/n/"
NAMES = [f"{BASE}a", f"{BASE}b-partition-0", f"{BASE}b-partition-4", f"{BASE}c"]
EVERYTHING = frozenset({"partitions", "topic_id", "properties", "configs", "created"})


def rows(answer: Answer) -> list[dict[str, Any]]:
    try:
        assert answer.details is not None
        return answer.details.to_pylist()
    finally:
        answer.release()


def lists(details: Details | None = None, **fields: Any) -> PluginOf:
    return PluginOf(list_topics=lambda: TopicListingResult.success(NAMES, details=details), **fields)


async def test_names_say_how_many_partitions_there_are() -> None:
    async with made(MemoryLister(NAMES)) as m:
        found = rows(await m.ask(wants=EVERYTHING))
        assert [(row["topic"], row["partitions"]) for row in found] == [
            (f"{BASE}a", 0),
            (f"{BASE}b", 5),
            (f"{BASE}c", 0),
        ]
        assert all(row[name] is None for row in found for name in EVERYTHING - {"partitions"})
        answer = await m.ask()
        assert answer.details is None
        answer.release()


async def test_what_a_plugin_gives_with_its_topics_wins() -> None:
    details = Details.of([f"{BASE}b", f"{BASE}a"], partitions=[9, 0], properties=[{"k": "v"}, None])
    async with made(plugins={"p": lists(details)}) as m:
        found = rows(await m.ask(wants=frozenset({"partitions", "properties"})))
        assert found == [
            {"topic": f"{BASE}a", "partitions": 0, "properties": None},
            {"topic": f"{BASE}b", "partitions": 9, "properties": {"k": "v"}},
            {"topic": f"{BASE}c", "partitions": 0, "properties": None},  # of which it says nothing
        ]


async def test_what_nobody_may_see_has_no_details() -> None:
    details = Details.of([f"{BASE}a", f"{BASE}b", f"{BASE}c"], partitions=[1, 2, 3])
    masks = PluginOf(visible=lambda topics: pa.array([name != NAMES[0] for name in topics.to_pylist()]))
    async with made(plugins={"p": lists(details), "m": masks}) as m:
        wants = frozenset({"partitions"})
        assert [row["topic"] for row in rows(await m.ask(wants=wants))] == [f"{BASE}b", f"{BASE}c"]
        matching = rows(await m.ask(pattern="t/n/[ac]", wants=wants))
        assert matching == [{"topic": f"{BASE}c", "partitions": 3}]


async def test_partitions_that_masks_hide_count(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{BASE}x{topic}-partition-{number}" for topic in range(30) for number in range(topic % 4 + 1)]
    masks = PluginOf(visible=lambda topics: pc.invert(pc.match_substring_regex(topics, "-[123]$|x7-")))
    monkeypatch.setattr(listing_details, "_BLOCK", 10)
    async with made(MemoryLister(names, at_once=False), {"m": masks}) as m:
        wants = frozenset({"partitions"})
        expected = {f"{BASE}x{topic}": topic % 4 + 1 for topic in range(30) if topic != 7}
        for fields in ({}, {"page": Page(None, 100)}):
            found = rows(await m.ask(wants=wants, **fields))
            assert {row["topic"]: row["partitions"] for row in found} == expected
            assert [row["topic"] for row in found] == sorted(expected)
        nothing = PluginOf(visible=lambda topics: pc.invert(pc.is_valid(topics)))
        async with made(MemoryLister(names, at_once=False), {"m": nothing}) as other:
            assert rows(await other.ask(wants=wants)) == []


async def test_whoever_lists_is_asked_for_what_it_did_not_give() -> None:
    asked: list[DescribeRequest] = []

    async def describe(request: DescribeRequest) -> Details:
        asked.append(request)
        assert request.names is not None
        async with request.lease(1000):
            return Details.of(
                request.names, topic_id=[name.encode()[-16:] for name in request.names.to_pylist()]
            )

    details = Details.of([f"{BASE}a", f"{BASE}b", f"{BASE}c"], partitions=[1, 2, 3])
    async with made(plugins={"p": lists(details, describe_topics=describe)}) as m:
        found = rows(await m.ask(wants=frozenset({"partitions", "topic_id"})))
        assert [row["partitions"] for row in found] == [1, 2, 3]
        assert [row["topic_id"] for row in found] == [row["topic"].encode()[-16:] for row in found]
        (request,) = asked
        assert request.wants == frozenset({"topic_id"})
        assert request.names is not None
        assert request.names.to_pylist() == [f"{BASE}a", f"{BASE}b", f"{BASE}c"]
        rows(await m.ask(wants=frozenset({"partitions"})))
        assert len(asked) == 1


@pytest.mark.parametrize(
    ("details", "says"),
    [
        (
            Details.of([f"{BASE}z"], partitions=[1]),
            "gave details of 'persistent://t/n/z', which it did not list",
        ),
        (Details.of([f"{BASE}b-partition-0"], partitions=[1]), "which it did not list"),
        (Details.of([f"{BASE}a"] * 2, partitions=[1, 1]), "'persistent://t/n/a' is there more than once"),
        (
            Details.of([f"{BASE}a"], partitions=[-1]),
            "a negative number of partitions for 'persistent://t/n/a'",
        ),
        (Details.of([f"{BASE}a"], configs=[{}]), "a column 'configs' was not asked for"),
    ],
)
async def test_wrong_details_are_a_failure_of_the_plugin(details: Details, says: str) -> None:
    async with made(plugins={"p": lists(details)}) as m:
        with pytest.raises(ListingFailed, match="plugin 'p'") as raised:
            await m.ask(wants=frozenset({"partitions"}))
        assert says in raised.value.message


async def test_a_wrong_description_is_a_failure_of_the_plugin() -> None:
    describes = lists(describe_topics=lambda: Details.of([f"{BASE}z"], partitions=[1]))
    async with made(plugins={"p": describes}) as m:
        with pytest.raises(
            ListingFailed, match=r"plugin 'p'.*'persistent://t/n/z', which was not asked about"
        ):
            await m.ask(wants=frozenset({"partitions"}))
    async with made(plugins={"p": lists(describe_topics=lambda: "three")}) as m:
        with pytest.raises(ListingFailed, match=r"returned a str, not broker_core.Details or None"):
            await m.ask(wants=frozenset({"partitions"}))


async def test_more_partitions_than_a_number_can_say() -> None:
    async with made(MemoryLister([f"{BASE}x-partition-{2**31 - 1}"])) as m:
        with pytest.raises(ListingFailed, match="has a partition of index 2147483647"):
            await m.ask(wants=frozenset({"partitions"}))
