"""The cache of bounded memory: evicts the least recently used, keeps its limit, reports what leaves."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from broker_core import BoundedCache

_KEYS = st.text(st.sampled_from("abc"), max_size=2)
ENTRY = 512


def test_a_value_is_kept_until_others_need_the_room() -> None:
    cache: BoundedCache[str, int] = BoundedCache(8 * 1024)
    for number in range(5):
        assert cache.put(str(number), number, 1000)
        assert cache.get("0") == 0  # used, so that it stays
    assert cache.get("1") == 1
    cache.put("5", 5, 1000)
    assert [cache.get(str(number)) for number in range(6)] == [0, 1, None, 3, 4, 5]
    assert len(cache) == cache.nbytes // (1000 + ENTRY)


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    dropped: list[tuple[str, str]] = []
    cache: BoundedCache[str, str] = BoundedCache(
        8 * 1024, on_drop=lambda key, value: dropped.append((key, value))
    )
    cache.put("a", "first", 10)
    assert cache.put_first("a", "second", 10) == "first"
    cache.put("a", "third", 20)
    assert (cache.get("a"), cache.nbytes, dropped) == ("third", 20 + ENTRY, [("a", "first")])
    assert (cache.pop("a"), cache.pop("a")) == ("third", None)
    assert cache.put_first("b", "new", 1) == "new"
    cache.clear()
    assert dropped == [("a", "first"), ("a", "third"), ("b", "new")]


def test_what_would_take_more_than_all_is_not_kept_and_neither_is_the_old_one() -> None:
    cache: BoundedCache[str, int] = BoundedCache(8 * 1024)
    cache.put("a", 1, 10)
    assert not cache.put("a", 2, 8 * 1024)
    assert (cache.get("a"), cache.nbytes) == (None, 0)


def test_room_can_be_made_before_it_is_needed() -> None:
    cache: BoundedCache[int, int] = BoundedCache(10 * (ENTRY + 100))
    for number in range(10):
        cache.put(number, number, 100)
    cache.make_room(2 * (ENTRY + 100))
    assert cache.keys() == list(range(2, 10))
    assert 1 not in cache
    assert 2 in cache


def test_a_closed_cache_keeps_nothing() -> None:
    cache: BoundedCache[str, int] = BoundedCache(8 * 1024)
    cache.put("a", 1, 10)
    cache.close()
    cache.put("b", 1, 10)
    assert (cache.get("a"), cache.get("b"), cache.nbytes, len(cache), cache.limit) == (None, None, 0, 0, 0)


@given(st.lists(st.tuples(_KEYS, st.integers(0, 3000), st.booleans())), st.integers(0, 10_000))
def test_the_limit_is_kept_whatever_is_put(steps: list[tuple[str, int, bool]], limit: int) -> None:
    cache: BoundedCache[str, str] = BoundedCache(limit)
    for key, size, put in steps:
        if put:
            cache.put(key, key, size)
        assert cache.get(key) in (None, key)
        assert 0 <= cache.nbytes <= limit
        assert (cache.nbytes == 0) == (len(cache) == 0)


def test_threads_may_use_it_at_once() -> None:
    cache: BoundedCache[int, int] = BoundedCache(20 * 1024)
    wrong: list[object] = []

    def use(seed: int) -> None:
        for step in range(3000):
            key = (seed * 7 + step * 13) % 40
            cache.put_first(key, key, 500)
            if cache.get(key) not in (None, key):
                wrong.append(key)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(cache) == cache.nbytes // (500 + ENTRY) <= cache.limit // (500 + ENTRY)


class Pinned:
    """A value that somebody may still have."""


def test_what_has_an_owner_counts_until_nobody_has_it() -> None:
    cache: BoundedCache[str, Pinned] = BoundedCache(4 * (1000 + ENTRY))
    reader = Pinned()
    cache.put("a", reader, 1000, owner=reader)
    cache.put("b", reader, 1000, owner=reader)
    assert cache.nbytes == 1000 + 2 * ENTRY
    cache.clear()
    assert (len(cache), cache.nbytes) == (0, 1000 + ENTRY)  # somebody still reads it
    for key in "cdef":
        value = Pinned()
        assert cache.put(key, value, 1000, owner=value)
        del value
    assert cache.keys() == ["d", "e", "f"]
    assert cache.nbytes == cache.limit
    del reader
    assert cache.nbytes == 3 * (1000 + ENTRY)


def test_parts_that_values_share_count_once_until_nobody_has_them() -> None:
    cache: BoundedCache[str, list[Pinned]] = BoundedCache(6000)
    shared, own, other = Pinned(), Pinned(), Pinned()
    cache.put("a", [shared, own], 100, parts=[(shared, 1000), (own, 500)])
    assert cache.nbytes == 100 + 1500 + ENTRY
    cache.put("b", [shared, other], 100, parts=[(shared, 1000), (other, 700)])
    assert cache.nbytes == 2 * (100 + ENTRY) + 2200
    del own
    cache.pop("a")
    assert cache.nbytes == 100 + ENTRY + 1700
    cache.clear()
    assert cache.nbytes == 1700  # somebody still has both
    del shared
    assert cache.nbytes == 700
    assert not cache.put("c", [], 100, parts=[(Pinned(), 6000)])
    assert cache.get("c") is None


def test_bytes_may_be_claimed_before_they_are_there() -> None:
    cache: BoundedCache[str, Pinned] = BoundedCache(3000)
    for key in "ab":
        value = Pinned()
        cache.put(key, value, 900, owner=value)
        del value
    assert not cache.claim(3001)
    assert cache.keys() == ["a", "b"]
    assert cache.claim(1500)
    assert (cache.keys(), cache.nbytes) == (["b"], 1500 + 900 + ENTRY)
    held = cache.get("b")
    assert not cache.claim(1500)  # who has it is not asked
    assert (cache.keys(), held is not None) == ([], True)
    cache.give_back(1500)
    assert cache.claim(1500)
    assert cache.make_room(0)
