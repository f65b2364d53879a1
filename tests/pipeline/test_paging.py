"""Pages against brute force, while topics change and masks hide a third: cut by the core and by plugins."""

from __future__ import annotations

import random
from bisect import bisect_left
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core import Details, Listing, ListingRequest, Mode, Page, Position, TopicListingResult, hookimpl
from broker_core.errors import ListingFailed
from broker_core.listing.listing_hash import topics_hash
from broker_core.pipeline import Answer, Trace
from broker_core.settings import LimitsSettings
from tests.support.chunks import tiny_chunks
from tests.support.examples import examples
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import NAMESPACE, Made, made
from tests.support.pipelines import request as asked_for
from tests.support.plugins import PluginOf

BASE = "persistent://t/n/"


def hidden(name: str) -> bool:
    """A third of all names, by nothing that is a range in any order."""
    return sum(name.encode()) % 3 == 0


def mask(topics: pa.LargeStringArray) -> pa.BooleanArray:
    return pa.array([not hidden(name) for name in topics.to_pylist()], pa.bool_())


def read(answer: Answer) -> tuple[list[str], Position | None]:
    try:
        return answer.names.to_pylist(), answer.next
    finally:
        answer.release()


async def page(
    m: Made, start: Position | None, limit: int, **fields: Any
) -> tuple[list[str], Position | None]:
    return read(await m.ask(page=Page(start, limit), **fields))


@lru_cache(maxsize=8)
def in_order(names: frozenset[str]) -> list[Position]:
    return sorted(map(Position.of, names))


def expected(names: set[str], start: Position | None, limit: int) -> tuple[list[str], Position | None]:
    positions = in_order(frozenset(names))
    left = positions if start is None else positions[bisect_left(positions, start) :]
    return [each.name for each in left[:limit]], left[limit] if len(left) > limit else None


def some_names(chosen: random.Random, count: int) -> set[str]:
    names = set()
    for _ in range(count):
        base = chosen.choice(["a", "b", "c-", "é", "\U0001f600", "\uffee"]) + str(
            chosen.randrange(count // 2 + 1)
        )
        names.add(BASE + base + chosen.choice(["", "", f"-partition-{chosen.randrange(15)}"]))
    return names


class Changing:
    """A plugin whose topics change, listed anew for each version."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names: set[str] = set()
        self.version = 0
        self.listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, [])
        self.asked: list[Page | None] = []

    def change(self, names: set[str]) -> None:
        self.names = names
        self.version += 1
        self.listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, list(names))

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        self.asked.append(request.page)
        if self.kind == "listing":
            return TopicListingResult.success(self.listing)
        if self.kind == "names":
            return TopicListingResult.success(list(self.names), version=self.version)
        if request.page is None:
            return TopicListingResult.success(sorted(self.names), version=self.version)
        names, following = expected(self.names, request.page.start, request.page.limit)
        return TopicListingResult.success(names, next=following, version=self.version)


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("kind", ["catalog", "listing", "names", "pages"])
async def test_random_pages_while_topics_change(kind: str, masks: bool) -> None:
    chosen = random.Random(f"{kind}{masks}")
    plugin = Changing(kind)
    plugins: dict[str, object] = {} if kind == "catalog" else {"lists": plugin}
    if masks:
        plugins["masks"] = PluginOf(visible=mask)
    lister = MemoryLister(at_once=False)
    async with made(lister, plugins) as m:
        for _ in range(examples(4)):
            names = some_names(chosen, chosen.choice([0, 1, 20, 400]))
            plugin.change(names)
            lister.change(names)
            visible = {name for name in names if not (masks and hidden(name))}
            for _ in range(8):
                limit = chosen.choice([1, 2, 7, 100, chosen.randint(1, 10_000)])
                among = chosen.choice([sorted(names), sorted(some_names(chosen, 5))])
                start = Position.of(chosen.choice(among)) if among and chosen.random() < 0.8 else None
                assert await page(m, start, limit) == expected(visible, start, limit)
                # What was a page is not taken for all that there is.
                if chosen.random() < 0.3:
                    answer = await m.ask()
                    assert answer.topics_hash == topics_hash(visible)
                    answer.release()


@settings(max_examples=examples(15))
@given(data=st.data())
async def test_a_walk_over_pages_is_the_listing(data: st.DataObject) -> None:
    locals_ = st.from_regex(r"[ab\-é\U0001f600\uffee]{1,3}(-partition-[0-9]{1,2})?", fullmatch=True)
    names = data.draw(st.sets(locals_.map(BASE.__add__), max_size=40))
    limit = data.draw(st.integers(1, 50))
    async with made(MemoryLister(names, at_once=False), {"masks": PluginOf(visible=mask)}) as m:
        walked: list[str] = []
        start: Position | None = None
        while True:
            part, start = await page(m, start, limit)
            walked += part
            if start is None:
                break
            assert len(part) == limit  # a page is full unless it is the last
            assert not hidden(start.name)
    assert walked == expected({name for name in names if not hidden(name)}, None, 1000)[0]


@settings(max_examples=examples(13))
@given(data=st.data())
async def test_a_walk_while_topics_come_and_go(data: st.DataObject) -> None:
    locals_ = st.from_regex(r"(a|b|-x|\U0001f600|\uffee){1,2}(-partition-[0-9]{1,2}x?)?", fullmatch=True)
    full = st.builds("{}://t/n/{}".format, st.sampled_from(["persistent", "non-persistent"]), locals_)
    stay = data.draw(st.sets(full, max_size=30))
    limit = data.draw(st.integers(1, 10))
    seen: list[str] = []
    with tiny_chunks(100):
        async with made(MemoryLister(stay, at_once=False)) as m:
            start: Position | None = None
            while True:
                there = stay | data.draw(st.sets(full, max_size=10))
                m.lister.change(there)
                part, start = await page(m, start, limit, mode=Mode.ALL)
                assert set(part) <= there
                seen += part
                if start is None:
                    break
    assert len(set(seen)) == len(seen)
    assert stay <= set(seen)
    assert [Position.of(name) for name in seen] == sorted(map(Position.of, seen))


@pytest.mark.parametrize("kind", ["catalog", "pages"])
async def test_a_pattern_and_a_page(kind: str) -> None:
    names = {f"{BASE}{'ab'[number % 2]}{number:04d}" for number in range(3000)}
    plugin = Changing(kind)
    plugin.change(names)
    plugins = {} if kind == "catalog" else {"lists": plugin}
    matching = {name for name in names if name.startswith(f"{BASE}b") and name.endswith("3")}
    async with made(MemoryLister(names, at_once=False), plugins) as m:
        start = Position(f"{BASE}b1000")
        for limit in (1, 10, 10_000):
            found = await page(m, start, limit, pattern="t/n/b.*3")
            assert found == expected(matching, start, limit)


async def test_a_page_that_is_handed_on_is_asked_for_until_it_is_full() -> None:
    plugin = Changing("pages")
    plugin.change({f"{BASE}x{number:04d}" for number in range(2000)})
    masks = PluginOf(visible=lambda topics: pc.greater_equal(topics, f"{BASE}x1500"))
    async with made(plugins={"lists": plugin, "masks": masks}) as m:
        trace = Trace()
        answer = await m.pipeline.answer(asked_for(page=Page(None, 10)), trace)
        assert read(answer) == (
            [f"{BASE}x{number}" for number in range(1500, 1510)],
            Position(f"{BASE}x1510"),
        )
    # Larger pages each time: 10, 20, 40 ... of 2000.
    assert [each.limit for each in plugin.asked if each is not None] == [10, 20, 40, 80, 160, 320, 640, 1280]


async def test_who_gives_pages_that_nothing_is_taken_from_is_asked_once() -> None:
    plugin = Changing("pages")
    plugin.change({f"{BASE}x{number:04d}" for number in range(100)})
    async with made(plugins={"lists": plugin}) as m:
        assert await page(m, Position(f"{BASE}x0050"), 10) == expected(
            plugin.names, Position(f"{BASE}x0050"), 10
        )
    assert plugin.asked == [Page(Position(f"{BASE}x0050"), 10)]


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (
            lambda: TopicListingResult.success([f"{BASE}b", f"{BASE}a"], next=Position(f"{BASE}z")),
            "out of order",
        ),
        (
            lambda: TopicListingResult.success(
                [f"{BASE}m-partition-10", f"{BASE}m-partition-2"], next=Position(f"{BASE}z")
            ),
            "'persistent://t/n/m-partition-10' is in front of 'persistent://t/n/m-partition-2'",
        ),
        (lambda: TopicListingResult.success([f"{BASE}m"] * 2, next=Position(f"{BASE}z")), "out of order"),
        (
            lambda: TopicListingResult.success(
                [f"{BASE}m{number}" for number in range(6)], next=Position(f"{BASE}z")
            ),
            "returned 6 topics for a page of 5",
        ),
        (
            lambda: TopicListingResult.success([f"{BASE}a"], next=Position(f"{BASE}z")),
            "'persistent://t/n/a' for a page",
        ),
        (lambda: TopicListingResult.success([f"{BASE}n"], next=Position(f"{BASE}n")), "next page begins at"),
        (lambda: TopicListingResult.success([], next=Position(f"{BASE}m")), "next page begins at"),
        (lambda: TopicListingResult.success([], next=Position(f"{BASE}b")), "next page begins at"),
        (lambda: TopicListingResult.success([], next=Position(f"{BASE}z")), "has at least one topic"),
        (
            lambda: TopicListingResult.success(
                Listing.from_names(NAMESPACE, Mode.PERSISTENT, [f"{BASE}a"]), next=Position(f"{BASE}z")
            ),
            "for a page that begins at",
        ),
        (lambda: TopicListingResult.unchanged("00000000"), "unchanged"),
    ],
)
async def test_a_wrong_page_is_a_failure_of_its_plugin(result: Any, says: str) -> None:
    async with made(plugins={"lists": PluginOf(list_topics=result)}) as m:
        with pytest.raises(ListingFailed, match="plugin 'lists'") as raised:
            await m.ask(page=Page(Position(f"{BASE}m"), 5), topics_hash="00000000")
        assert says in str(raised.value)


async def test_a_next_page_that_nobody_asked_for() -> None:
    lists = PluginOf(list_topics=lambda: TopicListingResult.success([f"{BASE}a"], next=Position(f"{BASE}z")))
    async with made(plugins={"lists": lists}) as m:
        with pytest.raises(ListingFailed, match="was asked for all topics"):
            await m.ask()


async def test_a_page_begins_in_its_namespace() -> None:
    async with made() as m:
        with pytest.raises(ListingFailed, match="A page of t/n cannot begin at 'persistent://t/other/x'"):
            await m.ask(page=Page(Position("persistent://t/other/x"), 1))


async def test_a_page_has_no_hash_of_the_client() -> None:
    names = {f"{BASE}a", f"{BASE}b"}
    asked: list[str | None] = []

    def note(request: ListingRequest) -> None:
        asked.append(request.topics_hash)

    async with made(MemoryLister(names), {"notes": PluginOf(list_topics=note)}) as m:
        for fields in ({"page": Page(None, 5)}, {"wants": frozenset({"partitions"})}):
            answer = await m.ask(topics_hash=topics_hash(names), **fields)
            assert answer.changed
            assert answer.topics_hash == topics_hash(names)  # of the names that it has
            answer.release()
    assert asked == [None, None]


async def test_a_last_page_that_does_not_say_so_is_not_kept_as_the_whole() -> None:
    names = [f"{BASE}x{number}" for number in range(10)]

    def lists(request: ListingRequest) -> TopicListingResult:
        if request.page is None:
            return TopicListingResult.success(names, version="1")
        found, following = expected(set(names), request.page.start, request.page.limit)
        if following is None:  # as an author may leave it out
            return TopicListingResult.success(found, version="1")
        return TopicListingResult.success(found, version="1", next=following)

    tables = {"lists": {"on_failure": "stale"}}
    for start, limit in [(Position(f"{BASE}x8"), 5), (None, 10), (None, 5), (Position(f"{BASE}x0"), 10)]:
        async with made(plugins={"lists": PluginOf(list_topics=lists)}, tables=tables) as m:
            assert await page(m, start, limit) == expected(set(names), start, limit)
            answer = await m.ask()
            assert read(answer)[0] == names


async def test_pages_take_permits_and_leave_nothing() -> None:
    names = [f"{BASE}x{number:05d}-partition-{number % 3}" for number in range(20_000)]
    async with made(
        MemoryLister(names, at_once=False), limits=LimitsSettings(heap_permits=64 * 1024 * 1024)
    ) as m:
        answer = await m.ask(page=Page(None, 1000))
        assert 1000 * 40 < m.permits.heap.acquired < 1_000_000
        answer.release()
        assert m.permits.heap.acquired == 0
        assert m.permits.snapshots.acquired == 0  # nothing is kept for the next one


async def test_details_of_a_page() -> None:
    names = {f"{BASE}x{base}-partition-{number}" for base in "abc" for number in range(5)} | {f"{BASE}plain"}
    async with made(MemoryLister(names, at_once=False)) as m:
        answer = await m.ask(
            page=Page(Position(f"{BASE}xa", 3), 5), wants=frozenset({"partitions", "created"})
        )
        assert answer.details is not None
        # Of each topic all its partitions count, on this page or not.
        assert answer.details.to_pylist() == [
            {"topic": f"{BASE}xa", "partitions": 5, "created": None},
            {"topic": f"{BASE}xb", "partitions": 5, "created": None},
        ]
        answer.release()


async def test_details_of_pages_that_a_plugin_gives() -> None:
    names = {f"{BASE}x-partition-{number}" for number in range(20)}

    def lists(request: ListingRequest) -> TopicListingResult:
        assert request.page is not None
        found, following = expected(names, request.page.start, request.page.limit)
        details = Details.of([f"{BASE}x"], partitions=[30]) if gives else None
        return TopicListingResult.success(found, next=following, details=details)

    async with made(plugins={"lists": PluginOf(list_topics=lists)}) as m:
        gives = True
        answer = await m.ask(page=Page(None, 5), wants=frozenset({"partitions"}))
        assert answer.details is not None
        assert answer.details.to_pylist() == [{"topic": f"{BASE}x", "partitions": 30}]
        answer.release()
        gives = False
        with pytest.raises(
            ListingFailed, match="within the partitions of 'persistent://t/n/x', and no number"
        ):
            await m.ask(page=Page(None, 5), wants=frozenset({"partitions"}))
