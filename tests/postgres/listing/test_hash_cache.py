"""Remembered questions in the core's bounded cache."""

from __future__ import annotations

from broker_core import BoundedCache
from broker_core.names import Mode, NamespaceName
from broker_core_postgres.listing.hash_cache import LastAnswer, QuestionKey, key_bytes


def question(number: int, pattern: str | None = None, **properties: str) -> QuestionKey:
    return NamespaceName.parse(f"t/n{number}"), Mode.ALL, pattern, tuple(sorted(properties.items()))


def test_texts_count_as_much_as_they_may_take() -> None:
    plain = key_bytes(question(1))
    assert 0 < plain < 1000
    assert key_bytes(question(1, "x" * 100)) == plain + 400
    assert key_bytes(question(1, k="value")) == plain + 24


def test_the_last_version_counts_and_memory_is_bounded() -> None:
    cache: BoundedCache[QuestionKey, LastAnswer] = BoundedCache(10_000)
    for number in range(100):
        asked = question(number)
        cache.put(asked, LastAnswer("a:1", "00000001", 10), key_bytes(asked))
        cache.put(asked, LastAnswer("a:2", "00000002", 20), key_bytes(asked))
        assert cache.get(asked) == LastAnswer("a:2", "00000002", 20)
        assert cache.nbytes <= 10_000
    assert 5 < len(cache) < 20
    long = question(7, "x" * 5_000)  # larger than the whole cache
    cache.put(long, LastAnswer("a:1", "00000001", 0), key_bytes(long))
    assert cache.get(long) is None
