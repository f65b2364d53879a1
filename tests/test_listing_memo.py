"""What a listing remembers: bounded, the least used go first, and safe for threads."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing_memo import Memo

_KEYS = st.text(st.sampled_from("abc"), max_size=2)


def test_a_value_is_kept_until_others_need_the_room() -> None:
    memo: Memo[int] = Memo(8 * 1024)
    for number in range(5):
        memo.put(str(number), number, 1000)
        assert memo.get("0") == 0  # used, so that it stays
    assert memo.get("1") == 1
    memo.put("5", 5, 1000)
    assert [memo.get(str(number)) for number in range(6)] == [0, 1, None, 3, 4, 5]
    assert len(memo) == 5


def test_the_first_value_under_a_key_stays() -> None:
    memo: Memo[str] = Memo(8 * 1024)
    memo.put("a", "first", 10)
    memo.put("a", "second", 10)
    assert memo.get("a") == "first"


def test_what_would_take_more_than_all_is_not_kept() -> None:
    memo: Memo[int] = Memo(8 * 1024)
    memo.put("a", 1, 8 * 1024)
    assert (memo.get("a"), memo.size) == (None, 0)
    memo.put("x" * 2048, 1, 0)
    assert memo.size == 0
    memo.put("half", 1, 4 * 1024)  # as a property has that half of the topics have
    assert memo.get("half") == 1


def test_a_closed_memo_keeps_nothing() -> None:
    memo: Memo[int] = Memo(8 * 1024)
    memo.put("a", 1, 10)
    memo.close()
    memo.put("b", 1, 10)
    assert (memo.get("a"), memo.get("b"), memo.size, len(memo), memo.limit) == (None, None, 0, 0, 0)


@given(st.lists(st.tuples(_KEYS, st.integers(0, 3000), st.booleans())), st.integers(0, 10_000))
def test_the_limit_is_kept_whatever_is_put(steps: list[tuple[str, int, bool]], limit: int) -> None:
    memo: Memo[str] = Memo(limit)
    for key, size, put in steps:
        if put:
            memo.put(key, key, size)
        assert memo.get(key) in (None, key)
        assert 0 <= memo.size <= limit
        assert (memo.size == 0) == (len(memo) == 0)


def test_threads_may_use_it_at_once() -> None:
    memo: Memo[int] = Memo(20 * 1024)
    wrong: list[object] = []

    def use(seed: int) -> None:
        for step in range(3000):
            key = (seed * 7 + step * 13) % 40
            memo.put(str(key), key, 500)
            if memo.get(str(key)) not in (None, key):
                wrong.append(key)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert memo.size <= memo.limit
    assert len(memo) == memo.size // (500 + 512)
