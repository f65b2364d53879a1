"""The sizes of past answers: the vectors of upstream's cache (reference 6.6), bounds, and hostile keys."""

from __future__ import annotations

import asyncio

import pyarrow as pa
import pytest

from broker_core.permits import PermitTimeout
from broker_core.size_cache import INITIAL_SIZE, SizeCache, SizeHolder, estimated_size


async def waiting_on(holder: SizeHolder, timeout: float | None = None) -> asyncio.Task[int]:
    task = asyncio.create_task(holder.size(timeout))
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize(
    ("names", "size"),
    [
        (["persistent://tenant/ns/topic1"], 61),
        (["persistent://t/n/😀"], 53),
        ([], 0),
        (["persistent://t/n/a", "persistent://t/n/b"], 100),
    ],
)
def test_estimated_size(names: list[str], size: int) -> None:
    assert estimated_size(names) == size
    assert estimated_size(pa.array(names, pa.large_string())) == size
    assert estimated_size(pa.chunked_array([pa.array(names, pa.string())])) == size


def test_same_question_same_holder() -> None:
    cache = SizeCache()
    holder = cache.get(("t/n", 0, None, ()))
    assert cache.get(("t/n", 0, None, ())) is holder
    others = [
        ("t/n", 1, None, ()),
        ("t/m", 0, None, ()),
        ("t/n", 0, "a.*", ()),
        ("t/n", 0, None, (("k", "v"),)),
    ]
    assert all(cache.get(other) is not holder for other in others)
    assert len(cache) == 5


async def test_the_first_takes_the_estimate_and_the_others_wait_for_its_size() -> None:
    holder = SizeCache().get("question")
    assert await holder.size() == INITIAL_SIZE == 10240
    assert holder.try_size() is None
    second = await waiting_on(holder)
    assert not second.done()
    holder.update(15000)
    assert await second == 15000
    assert await holder.size() == holder.try_size() == 15000
    holder.update(25000)
    assert holder.try_size() == 25000


async def test_a_first_that_fails_lets_the_others_go() -> None:
    holder = SizeCache().get("question")
    assert holder.try_size() == INITIAL_SIZE
    waiting = [await waiting_on(holder) for _ in range(3)]
    holder.reset_if_initializing()
    assert [await task for task in waiting] == [INITIAL_SIZE] * 3
    assert holder.try_size() == INITIAL_SIZE
    assert holder.in_flight
    assert holder.try_size() is None


def test_a_reset_after_the_size_is_known_changes_nothing() -> None:
    holder = SizeCache().get("question")
    holder.update(7)  # nobody had asked before
    holder.reset_if_initializing()
    assert holder.try_size() == 7


async def test_who_waits_may_go() -> None:
    holder = SizeCache().get("question")
    holder.try_size()
    cancelled, patient = await waiting_on(holder), await waiting_on(holder)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    with pytest.raises(PermitTimeout):
        await holder.size(0.01)
    holder.update(3)
    assert await patient == 3


def test_the_least_used_goes() -> None:
    cache = SizeCache(max_entries=3)
    holders = {name: cache.get(name) for name in "abc"}
    cache.get("a")
    cache.get("d")
    assert len(cache) == 3
    assert cache.get("a") is holders["a"]
    assert cache.get("c") is holders["c"]
    assert cache.get("b") is not holders["b"]


def test_none_in_flight_goes() -> None:
    cache = SizeCache(max_entries=3)
    in_flight = {}
    for name in "abcde":
        in_flight[name] = cache.get(name)
        assert in_flight[name].try_size() == INITIAL_SIZE
    for number in range(100):
        cache.get(number)
    assert all(cache.get(name) is holder for name, holder in in_flight.items())
    for holder in in_flight.values():
        holder.update(1)
    for number in range(100):
        cache.get(number)
    assert len(cache) == 3


def test_long_keys_of_clients_are_not_kept() -> None:
    cache = SizeCache()
    pattern = "x" * 100_000
    cache.get(("t/n", pattern))
    assert all(isinstance(key, int) for key in cache._holders)
