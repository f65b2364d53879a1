"""Hashes by question: bounded, and of one version each."""

from __future__ import annotations

from broker_core.names import Mode, NamespaceName
from broker_core_postgres.hash_cache import HashCache, Known, Question


def question(number: int, pattern: str | None = None) -> Question:
    return NamespaceName.parse(f"t/n{number}"), Mode.ALL, pattern, ()


def test_the_last_version_counts() -> None:
    cache = HashCache(10_000)
    assert cache.get(question(1)) is None
    cache.put(question(1), Known("a:1", "00000001", 10))
    cache.put(question(1), Known("a:2", "00000002", 20))
    assert cache.get(question(1)) == Known("a:2", "00000002", 20)
    assert len(cache) == 1


def test_memory_is_bounded_and_the_least_used_go_first() -> None:
    cache = HashCache(10_000)
    for number in range(100):
        cache.put(question(number), Known("a:1", "00000001", 0))
        assert cache.get(question(0)) is not None
        assert cache.nbytes <= 10_000
    assert 5 < len(cache) < 20
    assert cache.get(question(1)) is None
    cache.put(question(7, "x" * 5_000), Known("a:1", "00000001", 0))  # larger than all of it
    assert cache.get(question(7, "x" * 5_000)) is None
    cache.clear()
    assert (len(cache), cache.nbytes) == (0, 0)


def test_a_limit_of_nothing_remembers_nothing() -> None:
    cache = HashCache(0)
    cache.put(question(1), Known("a:1", "00000001", 0))
    assert len(cache) == 0
