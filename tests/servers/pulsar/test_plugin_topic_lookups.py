"""Lookups of topics that plugins list, describe or hide: answers to clients, and relayed commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import DescribeRequest, Details, Listing, ListingRequest, Mode, TopicListingResult, hookimpl
from broker_core.access.asker import Asker
from broker_core.errors import BrokerCoreError, ListingFailed, ServerError
from broker_core.names import TopicName
from broker_core.servers.pulsar.plugin_topic_lookups import PluginTopicLookups
from broker_core.servers.pulsar.standalone_lookups import StandaloneLookups
from broker_core.wire.pulsar import HEADER_SIZE, BaseCommand, commands
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import NAMESPACE, Made, made
from tests.support.plugins import PluginOf

BASE = "persistent://t/n/"
NAMES = [f"{BASE}plain", *(f"{BASE}parted-partition-{number}" for number in (0, 2)), f"{BASE}x-partition-01"]


class Cluster:
    """Brokers that note what they are asked: partitions by topic; one that they do not know they make."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions
        self.asked: list[tuple[int, str, bool]] = []
        self.feature_flags = StandaloneLookups(self).feature_flags  # type: ignore[arg-type]

    async def answer(self, command: BaseCommand, _asker: Asker, /) -> bytes:
        if command.type != BaseCommand.PARTITIONED_METADATA:
            body: Any = command.lookupTopic if command.type == BaseCommand.LOOKUP else command.getSchema
            self.asked.append((command.type, body.topic, False))
            return commands.refuse(command, ServerError.ServiceNotReady, "from the brokers")
        question = command.partitionMetadata
        self.asked.append((command.type, question.topic, question.metadata_auto_creation_enabled))
        local = question.topic.rpartition("/")[2]
        if local not in self.partitions and not question.metadata_auto_creation_enabled:
            return commands.refuse(command, ServerError.TopicNotFound, "from the brokers")
        return commands.partitioned_metadata_response(question.request_id, self.partitions.get(local, 0))


class Unlisted:
    """What the catalogue has and lists to nobody."""

    async def partitions(self, topic: TopicName) -> int | None:
        if topic.local == "broken":
            raise BrokerCoreError("disk full")
        return 0 if topic.local.startswith("__") else None


@asynccontextmanager
async def lookups(
    plugins: Mapping[str, object] | None = None,
    names: list[str] | None = None,
    cluster: Cluster | None = None,
    tables: Any = None,
) -> AsyncIterator[tuple[PluginTopicLookups, Made]]:
    async with made(MemoryLister(names or []), plugins, tables=tables) as m:
        behind: Any = cluster or StandaloneLookups(Unlisted())
        yield PluginTopicLookups(m.pipeline.topics_by_name, behind, lists_itself=cluster is None), m


async def metadata(
    lookups: PluginTopicLookups, topic: str, *, auto_create: bool = False
) -> int | ServerError:
    frame = commands.partitioned_metadata(7, BASE + topic, auto_create=auto_create)
    answer = await lookups.answer(commands.decode(frame[HEADER_SIZE:]), Asker())
    body = commands.decode(answer[HEADER_SIZE:]).partitionMetadataResponse
    assert body.request_id == 7
    return body.partitions if body.response == body.Success else ServerError(body.error)


async def outcome(lookups: PluginTopicLookups, frame: bytes) -> ServerError:
    answer = commands.decode(
        (await lookups.answer(commands.decode(frame[HEADER_SIZE:]), Asker()))[HEADER_SIZE:]
    )
    is_lookup = answer.type == BaseCommand.LOOKUP_RESPONSE
    return ServerError(answer.lookupTopicResponse.error if is_lookup else answer.getSchemaResponse.error_code)


def by_names(**fields: Any) -> PluginOf:
    return PluginOf(list_topics=lambda: TopicListingResult.success(NAMES), **fields)


def hides(part: str, **fields: Any) -> PluginOf:
    return PluginOf(visible=lambda topics: pc.invert(pc.match_substring(topics, part)), **fields)


FOUND = {
    "plain": 0,
    "parted": 3,  # the highest index and one
    "parted-partition-2": 0,
    "parted-partition-1": ServerError.TopicNotFound,
    "x": ServerError.TopicNotFound,
    "x-partition-01": 0,
    "unknown": ServerError.TopicNotFound,
}


@pytest.mark.parametrize("depends_on", [None, [], ["pattern"], ["principal"]])
async def test_topics_that_a_plugin_lists(depends_on: list[str] | None) -> None:
    fields = {} if depends_on is None else {"depends_on": lambda: depends_on}
    async with lookups({"p": by_names(**fields)}, [f"{BASE}catalogued"]) as (asked, _):
        for topic, expected in FOUND.items():
            assert await metadata(asked, topic) == expected, topic
        assert await metadata(asked, "unknown", auto_create=True) == 0
        # The plugin's "these are all" is final: what the catalogue has is not listed, and not there.
        assert await metadata(asked, "catalogued") == ServerError.TopicNotFound


async def test_topics_that_the_catalogue_lists() -> None:
    for plugins in (
        {},
        {"passes": PluginOf(list_topics=lambda: None)},
        {"shows": PluginOf(visible=lambda: None)},
    ):
        async with lookups(plugins, NAMES) as (asked, _):
            for topic, expected in FOUND.items():
                assert await metadata(asked, topic) == expected, topic
            assert await metadata(asked, "__change_events") == 0  # there, though no listing has it


async def test_whoever_describes_is_asked_for_it() -> None:
    questions: list[DescribeRequest] = []

    async def describe(request: DescribeRequest) -> Details:
        questions.append(request)
        assert request.names is not None
        there = pc.is_in(request.names, pa.array([f"{BASE}parted"], pa.large_string()))
        names = request.names.filter(there)
        return Details.of(names, partitions=[4] * len(names))

    async with lookups({"p": by_names(describe_topics=describe)}) as (asked, _):
        assert await metadata(asked, "parted") == 4
        assert await metadata(asked, "parted-partition-3") == 0
        assert await metadata(asked, "parted-partition-4") == ServerError.TopicNotFound
        assert await metadata(asked, "plain") == ServerError.TopicNotFound
    assert questions[0].wants == frozenset({"partitions"})


async def test_the_chain_goes_on_where_a_plugin_passes() -> None:
    passes = PluginOf(list_topics=lambda: None, describe_topics=lambda: None)
    async with lookups({"passes": passes, "lists": by_names(), "gives": GIVES}) as (asked, _):
        assert await metadata(asked, "parted") == 3
    async with lookups({"passes": passes, "gives": GIVES, "lists": by_names()}) as (asked, _):
        assert await metadata(asked, "parted") == 9


GIVES = PluginOf(
    describe_topics=lambda request: Details.of(request.names, partitions=[9] * len(request.names))
)
PASSES_LISTING = PluginOf(
    list_topics=lambda: None,
    describe_topics=lambda request: Details.of(request.names, partitions=[9] * len(request.names)),
)


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
    async with lookups(plugins, [] if lists else NAMES) as (asked, m):
        assert await metadata(asked, "parted") == 9
        assert await metadata(asked, "unknown") == ServerError.TopicNotFound
        assert await metadata(asked, "unknown", auto_create=True) == 0
        assert (await wanted(m))["parted"] == 9
        assert "unknown" not in await wanted(m)
    if masks:
        async with lookups({**plugins, "gives": PASSES_LISTING}, [] if lists else NAMES) as (asked, _):
            assert await metadata(asked, "parted") == 9
            assert await metadata(asked, "unknown") == ServerError.TopicNotFound


async def wanted(m: Made) -> dict[str, int]:
    """How many partitions each topic has, as somebody is told who asks for details with a listing."""
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
    async with lookups(plugins, [f"{BASE}catalogued"], tables=tables) as (asked, m):
        assert await metadata(asked, "parted") == 3
        assert await metadata(asked, "plain") == 0
        assert await metadata(asked, "catalogued") == ServerError.TopicNotFound
        assert await wanted(m) == {"parted": 3, "plain": 0, "x-partition-01": 0}
    async with lookups(plugins, cluster=Cluster(other=2), tables=tables) as (asked, _):
        assert await metadata(asked, "other") == 9  # of what brokers have, whoever describes says the number


@pytest.mark.parametrize("road", ["hook", "details", "pattern", "gateway"])
@pytest.mark.parametrize(
    ("told", "hidden", "expected"),
    [
        (0, ["-partition-0", "-partition-2"], ServerError.TopicNotFound),
        (0, [""], 0),
        (5, ["-partition-0", "-partition-2"], ServerError.TopicNotFound),
        (5, ["-partition-0"], 5),
        (2, ["-partition-0", "-partition-1"], 2),
    ],
)
async def test_the_names_that_a_topic_is_listed_by_are_seen_or_hidden(
    road: str, told: int, hidden: list[str], expected: int | ServerError
) -> None:
    """And not those that the number of partitions, which somebody tells who describes it, would make."""

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
    cluster = Cluster() if road == "gateway" else None
    async with lookups({"p": p, "m": mask}, cluster=cluster) as (asked, _):
        assert await metadata(asked, "parted") == expected
        if road != "details" and told == 5:  # of a partition that only the number tells: as of its topic
            found = 0 if expected == 5 else expected
            assert await metadata(asked, "parted-partition-4") == found


async def test_details_that_come_with_a_listing_win_over_names() -> None:
    def lists(request: ListingRequest) -> TopicListingResult:
        assert request.wants == frozenset({"partitions"})
        return TopicListingResult.success(NAMES, details=Details.of([f"{BASE}parted"], partitions=[5]))

    async with lookups({"p": PluginOf(list_topics=lists)}) as (asked, _):
        assert await metadata(asked, "parted") == 5
        assert await metadata(asked, "plain") == 0


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
    async with lookups({"p": plugin}, NAMES) as (asked, _):
        with pytest.raises(ListingFailed, match=says):
            await metadata(asked, "parted")
    async with lookups({"p": plugin}, NAMES, tables={"p": {"on_failure": "next"}}) as (asked, _):
        assert await metadata(asked, "parted") == 3


@pytest.mark.parametrize("lists", [True, False])
async def test_a_hidden_topic_does_not_exist(lists: bool) -> None:
    plugins: dict[str, object] = {"m": hides("parted")}
    if lists:
        plugins["p"] = by_names()
    async with lookups(plugins, [] if lists else NAMES) as (asked, _):
        assert await metadata(asked, "plain") == 0
        for topic in ("parted", "parted-partition-0"):
            assert await metadata(asked, topic) == ServerError.TopicNotFound
            assert await metadata(asked, topic, auto_create=True) == 0
    # Of a topic some of whose partitions may be seen, clients are told how many it has.
    async with lookups({"m": hides("partition-0"), "p": by_names()}) as (asked, _):
        assert await metadata(asked, "parted") == 3
        assert await metadata(asked, "parted-partition-0") == ServerError.TopicNotFound


async def test_masks_that_depend_on_properties_say_nothing_here() -> None:
    def selects(request: ListingRequest, topics: Any) -> Any:
        team = request.properties.get("team")
        return pa.array([team is not None] * len(topics))

    for plugin in (
        PluginOf(visible=selects),  # seen, where nothing is said of it
        hides("parted", depends_on=lambda: ["properties"]),
    ):
        async with lookups({"m": plugin}, NAMES) as (asked, _):
            assert await metadata(asked, "parted") == 3
    async with lookups({"m": hides("parted", depends_on=lambda: ["principal"])}, NAMES) as (asked, _):
        assert await metadata(asked, "parted") == ServerError.TopicNotFound


async def test_a_mask_that_fails_opens_nothing() -> None:
    def fails() -> None:
        raise RuntimeError("no")

    async with lookups({"m": PluginOf(visible=fails)}, NAMES) as (asked, _):
        with pytest.raises(ListingFailed, match="plugin 'm'"):
            await metadata(asked, "plain")


# -- before a cluster


async def test_a_gateway_believes_its_brokers_more_than_a_list_of_names() -> None:
    """Producers send by this number, and a plugin may list a part of the partitions."""
    cluster = Cluster(parted=8, other=2)
    async with lookups({"p": by_names()}, cluster=cluster) as (asked, _):
        assert await metadata(asked, "parted") == 8
        assert await metadata(asked, "parted", auto_create=True) == 8
        assert await metadata(asked, "other") == 2
        assert await metadata(asked, "new") == ServerError.TopicNotFound
        assert not any(creates for _, _, creates in cluster.asked)
        assert await metadata(asked, "new", auto_create=True) == 0
        assert [topic for _, topic, creates in cluster.asked if creates] == [f"{BASE}new"]
    # What the brokers do not have is there by the plugin's word, and is not made.
    empty = Cluster()
    async with lookups({"p": by_names()}, cluster=empty) as (asked, _):
        assert await metadata(asked, "parted") == 3
        assert await metadata(asked, "parted", auto_create=True) == 3
        assert not any(creates for _, _, creates in empty.asked)


async def test_a_gateway_asks_whoever_describes_topics_before_its_brokers() -> None:
    def describes(request: DescribeRequest) -> Details:
        assert request.names is not None
        known = [name for name in request.names.to_pylist() if name.endswith("parted")]
        return Details.of(known, partitions=[5] * len(known))

    cluster = Cluster(parted=8, other=2)
    async with lookups({"p": by_names(describe_topics=describes)}, cluster=cluster) as (asked, _):
        assert await metadata(asked, "parted") == 5
        assert cluster.asked == []
        assert await metadata(asked, "other") == 2


@pytest.mark.parametrize("on_failure", ["error", "next"])
async def test_producers_do_not_wait_for_a_plugin_that_fails_to_list(on_failure: str) -> None:
    def fails() -> None:
        raise RuntimeError("no store")

    cluster = Cluster(parted=8)
    tables = {"p": {"on_failure": on_failure}}
    async with lookups({"p": PluginOf(list_topics=fails)}, cluster=cluster, tables=tables) as (asked, _):
        assert await metadata(asked, "parted") == 8
        assert await metadata(asked, "new") == ServerError.TopicNotFound
        assert await metadata(asked, "new", auto_create=True) == 0
        assert await outcome(asked, commands.lookup(5, f"{BASE}parted")) == ServerError.ServiceNotReady


async def test_of_a_hidden_topic_no_broker_hears() -> None:
    cluster = Cluster(secret=3, open=3)
    async with lookups({"m": hides("secret")}, cluster=cluster) as (asked, _):
        assert await metadata(asked, "secret") == ServerError.TopicNotFound
        assert await metadata(asked, "secret", auto_create=True) == 0
        for topic in ("secret", "secret-partition-1"):
            assert await outcome(asked, commands.lookup(5, BASE + topic)) == ServerError.TopicNotFound
            assert await outcome(asked, commands.get_schema(6, BASE + topic)) == ServerError.TopicNotFound
        assert cluster.asked == []
        assert await metadata(asked, "open") == 3
        assert await outcome(asked, commands.lookup(5, f"{BASE}open")) == ServerError.ServiceNotReady
        assert await outcome(asked, commands.get_schema(6, f"{BASE}open")) == ServerError.ServiceNotReady


async def test_a_mask_that_shows_partitions_alone() -> None:
    """What the names are is known from the brokers alone, which are asked so that they make nothing."""
    cluster = Cluster(parted=3, plain=0)
    shows = PluginOf(visible=lambda topics: pc.match_substring(topics, "-partition-"))
    async with lookups({"m": shows}, cluster=cluster) as (asked, _):
        assert await metadata(asked, "parted", auto_create=True) == 3
        assert await metadata(asked, "plain", auto_create=True) == 0
        assert await metadata(asked, "plain") == ServerError.TopicNotFound
        assert await outcome(asked, commands.lookup(5, f"{BASE}plain")) == ServerError.TopicNotFound
        assert await outcome(asked, commands.lookup(5, f"{BASE}parted")) == ServerError.ServiceNotReady
        assert not any(creates for _, _, creates in cluster.asked)
    # And one that hides all the partitions of a topic whose own name it would show.
    async with lookups({"m": hides("-partition-")}, cluster=cluster) as (asked, _):
        assert await metadata(asked, "parted") == ServerError.TopicNotFound
        assert await metadata(asked, "plain") == 0


async def test_names_that_nobody_lists_are_left_to_the_brokers() -> None:
    cluster = Cluster()
    async with lookups({"m": hides("secret"), "p": by_names()}, cluster=cluster) as (asked, _):
        frame = commands.partitioned_metadata(7, "topic://t/n/x", auto_create=False)
        await asked.answer(commands.decode(frame[HEADER_SIZE:]), Asker())
        assert [topic for _, topic, _ in cluster.asked] == ["topic://t/n/x"]
        assert asked.feature_flags is cluster.feature_flags


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
    async with lookups({"p": plugin}) as (asked, _):
        found = await asyncio.gather(*(metadata(asked, "parted") for _ in range(500)))
        assert found == [3] * 500
        assert plugin.asked < 50
        plugin.listing = plugin.listing.with_changes([], [f"{BASE}parted-partition-9"])
        assert await metadata(asked, "parted") == 10  # what is asked later sees it


async def test_all_who_look_up_at_a_time_share_one_question_to_a_mask() -> None:
    """And each is told what may be seen by who it is."""
    columns: list[tuple[str | None, int]] = []

    async def visible(request: ListingRequest, topics: pa.LargeStringArray) -> Any:
        columns.append((request.asker.role, len(topics)))
        return pc.starts_with(topics, f"{BASE}{request.asker.role}-")

    async def one(role: str, topic: str) -> bool:
        frame = commands.partitioned_metadata(7, BASE + topic, auto_create=False)
        answer = await asked.answer(commands.decode(frame[HEADER_SIZE:]), askers[role])
        return bool(commands.decode(answer[HEADER_SIZE:]).partitionMetadataResponse.response == 0)

    askers = {role: Asker(role=role) for role in "ab"}
    names = [f"{role}-{number}" for role in "ab" for number in range(200)]
    mask = PluginOf(visible=visible, depends_on=lambda: ["principal"])
    async with lookups({"m": mask}, [BASE + name for name in names]) as (asked, _):
        for role in "ab":
            found = await asyncio.gather(*(one(role, name) for name in names))
            assert found == [name.startswith(role) for name in names]
        found = await asyncio.gather(*(one(role, "a-1") for _ in range(200) for role in "ab"))
        assert found == [True, False] * 200
    assert sum(count for _, count in columns) == 1200
    assert len(columns) < 40
