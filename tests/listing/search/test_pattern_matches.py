"""Matches of patterns in a listing, cached, for any number of threads."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from broker_core.listing.listing import data_of, part_of
from broker_core.listing.listing_hash import topics_hash
from broker_core.listing.search.pattern_scan import PatternScan, find_matches
from broker_core.patterns import compile_pattern
from tests.support.topics import (
    assert_selection,
    listing_of,
    matching,
    persistent,
    visible,
)

#: Bytes of a chunk of the second round.
TINY_CHUNK = 40_000


def test_match_all_takes_even_a_newline() -> None:
    listing = listing_of(persistent("a", "b\nc", "d"))
    assert len(listing.matching(compile_pattern(".*"))) == 3
    assert len(listing.matching(compile_pattern(".*.*"))) == 2
    some = listing.rows(np.array([0, 2])).matching(compile_pattern(".*"))
    assert_selection(some, persistent("a", "d"))
    assert some.pattern == ".*"


@pytest.mark.parametrize(
    ("count", "text", "quick"),
    [
        (2000, "t/n/.*[0-9]", True),
        (20_000, "t/n/.*[0-9]", False),
        (20_000, "t/n/.*-00777[0-9]", True),  # a substring to search for
        (20_000, "t/n/topic-0077.", True),  # a short range
        (20_000, "t/n/top.*", True),
        (20_000, "t/n/topic-000001", True),
        (20_000, ".*", True),
        (2000, "(?:.*[0-9a].{1,28}[b-f]){10}x", False),  # a thousand times slower than others
        (100_000, "t/n/.*-00777[0-9]", False),
    ],
)
def test_what_may_run_on_the_event_loop(count: int, text: str, *, quick: bool) -> None:
    listing = listing_of(persistent(*(f"topic-{number:06d}" for number in range(count))))
    pattern = compile_pattern(text)
    assert listing.all().matching_is_quick(pattern) is quick
    few = listing.rows(np.array([1, 3, 5]))
    assert few.matching_is_quick(compile_pattern("t/n/.*[0-9]"))
    listing.matching(compile_pattern("t/n/.*[0-9]"))
    assert listing.all().matching_is_quick(compile_pattern("t/n/.*[0-9]"))  # remembered


@pytest.mark.parametrize("partitions", [False, True])
def test_threads_may_ask_one_listing_at_once(*, partitions: bool) -> None:
    names = persistent(
        *(
            f"{number:05d}" + ("-😀" if number % 3 else f"-partition-{number % 5}") * partitions
            for number in range(0, 30_000, 50)
        )
    )
    shown = visible(names)
    expected = {text: matching(text, shown) for text in (f"t/n/.*{n}.*[05].*" for n in range(10))}
    listing = listing_of(names)
    wrong: list[str] = []

    def ask(seed: int) -> None:
        for text in random.Random(seed).choices(list(expected), k=15):
            found = listing.matching(compile_pattern(text))
            some = listing.rows(np.arange(0, len(listing), 2)).matching(compile_pattern(text))
            if found.names.to_pylist() != expected[text] or found.topics_hash != topics_hash(expected[text]):
                wrong.append(text)
            if not set(some.names.to_pylist()) <= set(expected[text]):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_first_of_equal_searches_is_remembered() -> None:
    listing = listing_of(persistent("a", "b", "c"))
    data, part, pattern = data_of(listing), part_of(listing.all()), compile_pattern("t/n/[ab]")
    one, other = PatternScan(data, part, pattern, id), PatternScan(data, part, pattern, id)
    assert one.same == other.same == (id(data), "t/n/[ab]")
    for search in (one, other):
        while (work := search.take()) is not None:
            work()
    assert one.result() == other.result()
    assert PatternScan(data, part_of(listing.range(0, 2)), pattern, id).same is None


def test_what_is_no_compiled_pattern_is_refused() -> None:
    listing = listing_of(persistent("a"))
    with pytest.raises(TypeError, match="a pattern is what"):
        find_matches(data_of(listing), part_of(listing.all()), "t/n/a")  # type: ignore[arg-type]
