"""Topics that plugins list, describe or hide: which there are, and how many partitions they have."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import DescribeRequest, Details, Listing, ListingRequest, Mode, TopicListingResult, hookimpl
from broker_core.errors import ListingFailed
from broker_core.service import Known, partition_names
from tests.support.finding import finding, topic
from tests.support.pipelines import NAMESPACE, Made
from tests.support.plugins import PluginOf
from tests.support.topic_plugins import BASE, LOCALS, NAMES, by_names, gives, hides

FOUND = {
    "plain": 0,
    "parted": 3,  # the highest index and one
    "parted-partition-2": 0,
    "parted-partition-1": None,
    "x": None,
    "x-partition-01": 0,
    "unknown": None,
}


@pytest.mark.parametrize("depends_on", [None, [], ["pattern"], ["principal"]])
async def test_topics_that_a_plugin_lists(depends_on: list[str] | None) -> None:
    fields = {} if depends_on is None else {"depends_on": lambda: depends_on}
    async with finding({"p": by_names(**fields)}, ["catalogued"]) as asked:
        for local, expected in FOUND.items():
            assert await asked.partitions(local) == expected, local
        # The plugin's "these are all" is final: what the catalogue has is not listed, and not there.
        assert await asked.partitions("catalogued") is None


async def test_topics_that_the_catalogue_lists() -> None:
    for plugins in (
        {},
        {"passes": PluginOf(list_topics=lambda: None)},
        {"shows": PluginOf(visible=lambda: None)},
    ):
        async with finding(plugins, [*LOCALS, "__change_events"]) as asked:
            for local, expected in FOUND.items():
                assert await asked.partitions(local) == expected, local
            assert await asked.partitions("__change_events") == 0  # there, though no listing has it


async def test_whoever_describes_is_asked_for_it() -> None:
    questions: list[DescribeRequest] = []

    async def describe(request: DescribeRequest) -> Details:
        questions.append(request)
        assert request.names is not None
        there = pc.is_in(request.names, pa.array([f"{BASE}parted"], pa.large_string()))
        names = request.names.filter(there)
        return Details.of(names, partitions=[4] * len(names))

    async with finding({"p": by_names(describe_topics=describe)}) as asked:
        assert await asked.partitions("parted") == 4
        assert await asked.partitions("parted-partition-3") == 0
        assert await asked.partitions("parted-partition-4") is None
        assert await asked.partitions("plain") is None
    assert questions[0].wants == frozenset({"partitions"})


def test_what_nobody_describes_is_as_it_is_listed() -> None:
    for listed, better in ((Known(2), None), (Known(exists=False), Known(7))):
        assert listed.described(better) is listed
    assert Known(2).described(Known(7)).partitions == 7


async def test_the_chain_goes_on_where_a_plugin_passes() -> None:
    passes = PluginOf(list_topics=lambda: None, describe_topics=lambda: None)
    async with finding({"passes": passes, "lists": by_names(), "gives": GIVES}) as asked:
        assert await asked.partitions("parted") == 3
    async with finding({"passes": passes, "gives": GIVES, "lists": by_names()}) as asked:
        assert await asked.partitions("parted") == 9


GIVES = gives(9)
PASSES_LISTING = gives(9, list_topics=lambda: None)


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("masks", [True, False])
async def test_what_a_plugin_describes_that_does_not_list_counts_for_what_others_list(
    lists: bool, masks: bool
) -> None:
    plugins: dict[str, object] = {"gives": GIVES}
    if lists:
        plugins["p"] = by_names()
    if masks:
        plugins["m"] = hides("nothing")
    async with finding(plugins, [] if lists else LOCALS) as asked:
        assert await asked.partitions("parted") == 9
        assert await asked.partitions("unknown") is None
        assert (await wanted(asked.made))["parted"] == 9
        assert "unknown" not in await wanted(asked.made)
    if masks:
        async with finding({**plugins, "gives": PASSES_LISTING}, [] if lists else LOCALS) as asked:
            assert await asked.partitions("parted") == 9
            assert await asked.partitions("unknown") is None


async def wanted(m: Made) -> dict[str, int]:
    """How many partitions each topic has, as an asker gets it that wants details with a listing."""
    answer = await m.ask(wants=frozenset({"partitions"}))
    try:
        assert answer.details is not None
        rows = answer.details.to_pylist()
    finally:
        answer.release()
    return {row["topic"].removeprefix(BASE): row["partitions"] for row in rows}


def _fails() -> None:
    raise RuntimeError("no store")


@pytest.mark.parametrize("describes", [lambda: None, _fails])
async def test_what_a_plugin_lists_and_does_not_describe_is_there_by_its_names(describes: Any) -> None:
    plugins = {"p": by_names(describe_topics=describes), "gives": GIVES}
    tables = {"p": {"on_failure": "next"}}
    async with finding(plugins, ["catalogued"], tables=tables) as asked:
        assert await asked.partitions("parted") == 3
        assert await asked.partitions("plain") == 0
        assert await asked.partitions("catalogued") is None
        assert await wanted(asked.made) == {"parted": 3, "plain": 0, "x-partition-01": 0}


@pytest.mark.parametrize("road", ["hook", "details", "pattern"])
@pytest.mark.parametrize(
    ("told", "hidden", "expected"),
    [
        (0, ["-partition-0", "-partition-2"], None),
        (0, [""], 0),
        (5, ["-partition-0", "-partition-2"], None),
        (5, ["-partition-0"], 5),
        (2, ["-partition-0", "-partition-1"], 2),
    ],
)
async def test_the_names_that_a_topic_is_listed_by_are_seen_or_hidden(
    road: str, told: int, hidden: list[str], expected: int | None
) -> None:
    """Names are not made from the number of partitions, which a describing plugin gives."""

    def describes(request: DescribeRequest) -> Details:
        return Details.of([f"{BASE}parted"], partitions=[told])

    def lists(request: ListingRequest) -> TopicListingResult:
        names = [name for name in NAMES if request.pattern is None or request.pattern.matches(name)]
        return TopicListingResult.success(names, details=describes(None) if road == "details" else None)  # type: ignore[arg-type]

    p = PluginOf(
        list_topics=lists,
        depends_on=lambda: ["pattern"] if road == "pattern" else [],
        **({} if road == "details" else {"describe_topics": describes}),
    )
    taken = pa.array([f"{BASE}parted{end}" for end in hidden], pa.large_string())
    mask = PluginOf(visible=lambda topics: pc.invert(pc.is_in(topics, taken)), depends_on=lambda: ())
    async with finding({"p": p, "m": mask}) as asked:
        assert await asked.partitions("parted") == expected
        if road != "details" and told == 5:  # of a partition that only the number tells: as of its topic
            found = 0 if expected == 5 else expected
            assert await asked.partitions("parted-partition-4") == found


async def test_details_that_come_with_a_listing_win_over_names() -> None:
    def lists(request: ListingRequest) -> TopicListingResult:
        assert request.wants == frozenset({"partitions"})
        return TopicListingResult.success(NAMES, details=Details.of([f"{BASE}parted"], partitions=[5]))

    async with finding({"p": PluginOf(list_topics=lists)}) as asked:
        assert await asked.partitions("parted") == 5
        assert await asked.partitions("plain") == 0


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (by_names(describe_topics=lambda: Details.of([f"{BASE}z"], partitions=[1])), "was not asked about"),
        (
            by_names(describe_topics=lambda request: Details.of(request.names)),
            "without the column 'partitions'",
        ),
        (PluginOf(list_topics=lambda: TopicListingResult.success(["x"])), "bad topic"),
    ],
)
async def test_a_failure_is_an_error_or_the_next_one_is_asked(plugin: object, says: str) -> None:
    async with finding({"p": plugin}, LOCALS) as asked:
        with pytest.raises(ListingFailed, match=says):
            await asked.partitions("parted")
    async with finding({"p": plugin}, LOCALS, tables={"p": {"on_failure": "next"}}) as asked:
        assert await asked.partitions("parted") == 3


@pytest.mark.parametrize("lists", [True, False])
async def test_a_hidden_topic_does_not_exist(lists: bool) -> None:
    plugins: dict[str, object] = {"m": hides("parted")}
    if lists:
        plugins["p"] = by_names()
    async with finding(plugins, [] if lists else LOCALS) as asked:
        assert await asked.partitions("plain") == 0
        for local in ("parted", "parted-partition-0"):
            assert await asked.partitions(local) is None
    # Of a topic some of whose partitions may be seen, clients are told how many it has.
    async with finding({"m": hides("partition-0"), "p": by_names()}) as asked:
        assert await asked.partitions("parted") == 3
        assert await asked.partitions("parted-partition-0") is None


async def test_masks_that_depend_on_properties_say_nothing_here() -> None:
    def selects(request: ListingRequest, topics: Any) -> Any:
        team = request.properties.get("team")
        return pa.array([team is not None] * len(topics))

    for plugin in (
        PluginOf(visible=selects),  # seen, where nothing is said of it
        hides("parted", depends_on=lambda: ["properties"]),
    ):
        async with finding({"m": plugin}, LOCALS) as asked:
            assert await asked.partitions("parted") == 3
    async with finding({"m": hides("parted", depends_on=lambda: ["principal"])}, LOCALS) as asked:
        assert await asked.partitions("parted") is None


class Counting:
    """A plugin with a listing of its own, which says that it does not depend on anything."""

    def __init__(self) -> None:
        self.asked = 0
        self.listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, NAMES)

    @hookimpl
    def broker_core_depends_on(self) -> set[str]:
        return set()

    @hookimpl
    async def broker_core_list_topics(self) -> TopicListingResult:
        self.asked += 1
        return TopicListingResult.success(self.listing)


async def test_all_who_ask_at_a_time_share_one_question_about_the_namespace() -> None:
    plugin = Counting()
    async with finding({"p": plugin}) as asked:
        found = await asyncio.gather(*(asked.partitions("parted") for _ in range(500)))
        assert found == [3] * 500
        assert plugin.asked < 50
        plugin.listing = plugin.listing.with_changes([], [f"{BASE}parted-partition-9"])
        assert await asked.partitions("parted") == 10  # what is asked later sees it


async def test_all_who_look_up_at_a_time_share_one_question_to_a_mask() -> None:
    """Each asker gets what its own role may see."""
    columns: list[tuple[str | None, int]] = []

    async def visible(request: ListingRequest, topics: pa.LargeStringArray) -> Any:
        columns.append((request.asker.role, len(topics)))
        return pc.starts_with(topics, f"{BASE}{request.asker.role}-")

    async def one(role: str, local: str) -> bool:
        return await asked.partitions(local, role=role) is not None

    names = [f"{role}-{number}" for role in "ab" for number in range(200)]
    mask = PluginOf(visible=visible, depends_on=lambda: ["principal"])
    async with finding({"m": mask}, names) as asked:
        for role in "ab":
            found = await asyncio.gather(*(one(role, name) for name in names))
            assert found == [name.startswith(role) for name in names]
        found = await asyncio.gather(*(one(role, "a-1") for _ in range(200) for role in "ab"))
        assert found == [True, False] * 200
    assert sum(count for _, count in columns) == 1200
    assert len(columns) < 40


def test_masks_are_asked_about_each_partition() -> None:
    (names,) = Known(2, True).masked(topic("x"))
    assert names.to_pylist() == [f"{BASE}x-partition-0", f"{BASE}x-partition-1"]


def test_the_names_of_partitions() -> None:
    x = topic("x")
    assert partition_names(x, 9, 11).to_pylist() == [f"{BASE}x-partition-9", f"{BASE}x-partition-10"]
    assert partition_names(x, 3, 3).to_pylist() == []
