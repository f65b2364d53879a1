"""Pages of rows: what is in them, and the memory that is reserved for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker_core import ListingRequest
from broker_core.errors import ListingFailed
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_postgres.listing import pages as rows
from broker_core_postgres.listing.pages import Memory, MustWait, Page, PageTooLarge, Reading

NS = NamespaceName.parse("acme/orders")


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def page(*names: str, other: tuple[str, ...] = (), counted: int | None = None) -> Page:
    texts = ["".join(f"/{name}" for name in each).encode() for each in (names, other)]
    return Page(len(names) + len(other) if counted is None else counted, sum(map(len, texts)), *texts)


def test_a_page_of_a_row() -> None:
    read = Page.of({"names": 2, "size": 3, "persistent": b"/a/b", "other": None})
    assert (read.names, read.persistent, read.other, read.full) == (2, b"/a/b", b"", False)
    assert Page.of({"names": 0, "size": 0, "persistent": None, "other": None}).names == 0
    with pytest.raises(PageTooLarge) as large:
        Page.of({"names": 2, "size": 3, "persistent": None, "other": None})
    assert large.value.size == 3


def test_the_last_row_of_a_page() -> None:
    for by_matched in (False, True):
        last = page("a", "b-partition-3").last(by_matched=by_matched)
        assert last == ("b", "persistent", "b-partition-3")
        assert page(other=("x",)).last(by_matched=by_matched) == ("x", "non-persistent", "x")
    both = page("a", other=("x",))
    assert both.last(by_matched=False) == ("a", "persistent", "a")
    assert both.last(by_matched=True) == ("x", "non-persistent", "x")
    same = page("a-partition-0", other=("a-partition-1",))
    assert same.last(by_matched=True) == ("a", "persistent", "a-partition-0")
    high = page("\U0001f600", other=("\uffff",))
    assert high.last(by_matched=True)[0] == "\U0001f600", "the order of bytes, not that of UTF-16"


@pytest.mark.parametrize("quick", [True, False], ids=["at-once", "in-a-thread"])
async def test_only_what_matches_is_left(
    workers: ThreadPoolExecutor, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not quick:
        monkeypatch.setattr(rows, "_QUICK", 0)
        monkeypatch.setattr(rows, "_QUICK_TO_MATCH", 0)
    pattern = compile_pattern("acme/orders/[a-c]+")
    reading = Reading(ListingRequest(NS, Mode.ALL, pattern=pattern), finish=True, workers=workers)
    await reading.take(page("a", "b-partition-1", "d", other=("c", "e")))
    await reading.take(page("f", "ca"))
    listing = await reading.finish()
    assert [name.rpartition("/")[2] for name in listing.names.to_pylist()] == [
        "c",
        "a",
        "b-partition-1",
        "ca",
    ]
    assert reading.rows == 7


async def test_a_newline_is_no_character_of_any(workers: ThreadPoolExecutor) -> None:
    request = ListingRequest(NS, Mode.ALL, pattern=compile_pattern("acme/orders/a.*"))
    reading = Reading(request, finish=False, workers=workers)
    await reading.take(page("a\nb", "ac"))
    assert len(await reading.finish()) == 1


async def test_names_that_were_not_counted(workers: ThreadPoolExecutor) -> None:
    reading = Reading(ListingRequest(NS, Mode.ALL), finish=False, workers=workers)
    with pytest.raises(ListingFailed, match="3 topics here, of which 2 names"):
        await reading.take(page("a", "b", counted=3))
    with pytest.raises(ListingFailed, match="local name is empty"):
        await reading.take(page("a", "", "b"))


async def test_memory_grows_and_is_asked_for_once() -> None:
    asked: list[int] = []

    async def reserve(size: int) -> None:
        asked.append(size)

    memory = Memory(reserve)
    await memory.need(1000)
    await memory.need(10)
    await memory.need_now(900)
    await memory.need_now(1001)
    assert asked == [1000, 1500]
    assert memory.reserved == 1500
    assert memory.page_bytes == 300
    assert Memory.for_page(300) == 1500
    assert Memory.for_page(0, held=100) == 125


async def test_memory_that_has_to_be_waited_for() -> None:
    granted = asyncio.Event()

    async def reserve(_size: int) -> None:
        await granted.wait()

    memory = Memory(reserve)
    with pytest.raises(MustWait) as waiting:
        await memory.need_now(100)
    assert memory.reserved == 0
    granted.set()
    await memory.wait_for(waiting.value)
    assert memory.reserved == 100


async def test_memory_that_is_refused() -> None:
    async def reserve(_size: int) -> None:
        raise ListingFailed("none")

    with pytest.raises(ListingFailed, match="none"):
        await Memory(reserve).need_now(100)
