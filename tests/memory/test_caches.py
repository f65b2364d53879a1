from __future__ import annotations

from broker_core.memory.bounded_cache import BoundedCache, Caches, CacheState


def test_a_cache_is_shown_as_it_is_when_it_is_asked_for() -> None:
    caches, kept = Caches(), BoundedCache[str, str](10_000)
    caches.show_bounded("kept", kept)
    before = caches.states()["kept"]
    kept.put("a", "b", 100)
    after = caches.states()["kept"]
    assert (before.entries, after.entries, after.limit) == (0, 1, 10_000)
    assert after.size() == kept.nbytes > 100


def test_another_cache_takes_the_place_of_the_former_one() -> None:
    caches, former, now = Caches(), BoundedCache[str, str](1_000), BoundedCache[str, str](2_000)
    caches.show_bounded("one", former)
    caches.show("one", lambda: CacheState(len(now), lambda: now.nbytes, now.limit))
    assert [(name, state.limit) for name, state in caches.states().items()] == [("one", 2_000)]
