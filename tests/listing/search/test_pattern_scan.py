"""Scanning a large listing: all methods find the same rows, and long scans can be cancelled."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from broker_core.listing.listing import Listing, data_of, part_of
from broker_core.listing.listing_part import ListingPart
from broker_core.listing.search import pattern_scan
from broker_core.listing.search.chunk_search import ChunkSearch, RowsSearch
from broker_core.listing.search.pattern_scan import PatternScan, matches_are_quick
from broker_core.names import Mode
from broker_core.names.name_columns import matched_forms
from broker_core.patterns import TopicsPattern, compile_pattern
from tests.support.one_test import in_one_test
from tests.support.topics import NAMESPACE, matched_form

COUNT = 20_000

#: Bytes of a chunk of the second round.
TINY_CHUNK = 20_000


@cache
def names_of(kind: str) -> tuple[str, ...]:
    chance = random.Random(kind)
    kinds: dict[str, Callable[[int], str]] = {
        "plain": lambda i: f"device-{i:06d}-temperature",
        "partitions": lambda i: f"device-{i // 8:06d}{'-😀' if i % 5 == 0 else ''}-partition-{i % 8}",
        "random": lambda i: "".join(chance.choices("0123456789abcdef-.", k=chance.randrange(8, 50))) + f"{i}",
        "newlines": lambda i: f"device\n{i:06d}" if i % 999 == 0 else f"device-{i:06d}-humidity",
    }
    return tuple(f"persistent://t/n/{kinds[kind](number)}" for number in range(COUNT))


def made_listing(kind: str) -> Listing:
    """More than half a megabyte of matched forms: several blocks."""
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, names_of(kind))


@pytest.fixture(scope="module", params=["plain", "partitions", "random", "newlines"])
def listing(request: pytest.FixtureRequest) -> Listing:
    return made_listing(request.param)


@pytest.fixture(scope="module")
def random_listing(_chunk_bytes: None) -> Listing:  # of each size of chunks
    return made_listing("random")


def brute(listing: Listing, pattern: TopicsPattern) -> NDArray[np.int64]:
    """The rows by Arrow's kernel over all of the column, at once."""
    keep = pattern.match_column(matched_forms(listing.names, listing.namespace))
    return np.flatnonzero(keep.to_numpy(zero_copy_only=False))


def those_of(found: NDArray[np.int64], rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """The rows found that are among others, in their order."""
    among = np.zeros(COUNT, bool)
    among[rows] = True
    return found[among[found]]


@pytest.fixture(scope="module")
def expected(listing: Listing) -> Callable[[str], NDArray[np.int64]]:
    """The rows of ``listing`` that :func:`brute` finds by a pattern."""
    return cache(lambda text: brute(listing, compile_pattern(text)))


def search(
    listing: Listing, pattern: TopicsPattern, within: ListingPart | None = None
) -> NDArray[np.integer]:
    scan = scan_of(listing, pattern, within)
    while (work := scan.take()) is not None:
        work()
    return scan.result().rows_in(data_of(listing))


def scan_of(
    listing: Listing, pattern: TopicsPattern, within: ListingPart | None = None
) -> PatternScan[ListingPart]:
    part = part_of(listing.all()) if within is None else within
    return PatternScan(data_of(listing), part, pattern, lambda found: found)


PATTERNS = [
    *(
        "t/n/.*-0123.*",
        "t/n/.*-01234[5-9].*",
        "t/n/.*device.*[02468]",
        "t/n/device-01.*",
        "t/n/device-01[0-9]*-?.*",
    ),
    *(
        "t/n/(device-00|device-01).*[13579]",
        "t/n/.*[13579].*[02468]",
        "t/n/.*e-0.*x.*",
        "t/n/device-012345.*",
        ".*😀",
    ),
    *(
        "t/n/.*(abc|def).*",
        "t/n/.*0a.*",
        "(?i)t/n/DEVICE.*7",
        "t/n/.*[01][23][45][67].*",
        "t/n/.*[0-4]{2}[ab][cd]?.*",
        "nowhere/.*",
        "t/n/",
        "t/n/.*\\.\\..*",
        "t/n/.*\n.*",
        "^.*$",
    ),
]


@in_one_test("text", PATTERNS)
def test_each_way_finds_the_same(
    listing: Listing, text: str, expected: Callable[[str], NDArray[np.int64]]
) -> None:
    assert_array_equal(search(listing, compile_pattern(text)), expected(text))


@in_one_test("text", PATTERNS)
def test_each_way_within_a_selection(
    listing: Listing, text: str, expected: Callable[[str], NDArray[np.int64]]
) -> None:
    pattern = compile_pattern(text)
    for rows in (
        np.arange(0, COUNT, 2),
        np.arange(7, COUNT, 97),
        np.arange(100, COUNT - 100),
        np.arange(50, 90),
    ):
        found = search(listing, pattern, part_of(listing.rows(rows)))
        assert_array_equal(found, those_of(expected(text), rows))


def test_a_whole_range_is_a_slice() -> None:
    plain = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names_of("plain"))
    for text, bounds in (
        ("t/n/device-0001.*", (100, 200)),
        ("t/n/.*", (0, COUNT)),
        ("^.*$", (0, COUNT)),
        ("t/n/device-000100-temperature", (100, 101)),
    ):
        found = plain.matching(compile_pattern(text))
        assert found.is_slice
        assert found.bounds == bounds


@pytest.mark.parametrize(
    ("namespace", "locals_", "text"),
    [
        # The end of one name and the beginning of the next seem to have what only the next has.
        ("t/ct", ["c", "ct", "c0", "x/ct"[2:]], ".*/ct/c.*"),
        ("ab/ab", ["x", "xab", "xabab", "ab"], ".*xab.*"),
        ("aa/aa", ["aaa", "aaaa", "aaaaa", "baa"], ".*aaaa.*"),
        ("t/n", ["abcx", "bcxt", "cxt", "xt"], ".*cxt.*"),
    ],
)
def test_finds_across_the_edges_of_names(namespace: str, locals_: list[str], text: str) -> None:
    # Enough names for the search of a substring, few with it.
    names = [f"persistent://{namespace}/{name}" for name in locals_]
    names += [f"persistent://{namespace}/{'zq' * 12}{number}" for number in range(2000)]
    listing = Listing.from_names(namespace, Mode.PERSISTENT, names)
    pattern = compile_pattern(text)
    found = search(listing, pattern)
    assert_array_equal(found, brute(listing, pattern))
    shown = listing.names.to_pylist()
    assert {shown[row] for row in found} == {name for name in names if pattern.matches(name)}


def test_random_substrings_of_names_that_share_them() -> None:
    chance = random.Random(5)
    names = sorted(
        {
            f"persistent://ab/ba/{''.join(chance.choices('ab', k=chance.randrange(1, 12)))}"
            for _ in range(3000)
        }
    )
    listing = Listing.from_names("ab/ba", Mode.PERSISTENT, names)
    forms = [matched_form(name) for name in listing.names.to_pylist()]
    for _ in range(60):
        literal = "".join(chance.choices("ab/", weights=[5, 5, 1], k=chance.randrange(3, 9)))
        found = search(listing, compile_pattern(f".*{literal}.*"))
        assert found.tolist() == [row for row, form in enumerate(forms) if literal in form]


# RE2's automaton for this has too many states: it takes a few seconds over all of the names. It needs no substring.
SLOW = "(?:.*[0-9a].{1,28}[b-f]){6}[xy]"


# As large as that one, and each name fails at its first byte: a search of which the time is not the processor's.
LARGE = f"[^t]{SLOW}"


class Processor:
    """A clock of the processor: each byte of a search takes ``each`` seconds, whatever else the machine does."""

    def __init__(self, each: float) -> None:
        self.each = each
        self.used = 0.0

    def runs(self, kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
        run = kind.run

        def timed(search: Any, low: int, high: int) -> Any:
            self.used += search.weight(low, high) * self.each
            return run(search, low, high)

        monkeypatch.setattr(kind, "run", timed)


@pytest.mark.parametrize("within", [None, 5, 2])
@pytest.mark.parametrize("each", [1e-6, 1e-5])
def test_the_slices_of_a_slow_search_are_short(
    within: int | None, each: float, random_listing: Listing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the pattern, others have a turn after some milliseconds of the processor."""
    processor = Processor(each)
    monkeypatch.setattr(pattern_scan, "time", SimpleNamespace(thread_time=lambda: processor.used))
    for kind in (ChunkSearch, RowsSearch):
        processor.runs(kind, monkeypatch)
    part = None if within is None else part_of(random_listing.rows(np.arange(0, COUNT, within)))
    scan = scan_of(random_listing, compile_pattern(LARGE), part)
    took: list[float] = []
    while sum(took) < 0.6 and (work := scan.take()) is not None:
        started = processor.used
        work()
        took.append(processor.used - started)
    assert len(took) > 20
    # But the first, of which only the size of the pattern's program is known.
    assert max(took[2:]) < 0.02
    assert scan.cost > 100


def test_what_a_substring_finds_is_matched_in_slices_too() -> None:
    """A substring is found at once, also one of a pattern that is slow to match what has it."""
    names = [
        f"persistent://{NAMESPACE}/{number * 7919 % COUNT:05x}{number % 97:02x}{'-mark' * (number % 4 == 0)}"
        for number in range(COUNT)
    ]
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    pattern = compile_pattern("(?:.*[0-9a].{0,28}[b-f]){4}-mark")
    scan = scan_of(listing, pattern)
    sizes: list[int] = []
    while (work := scan.take()) is not None:
        if isinstance(work, partial) and work.func == scan._match:
            sizes.append(sum(some.weight for some in work.args[0]))
        work()
    assert sum(sizes) > 20 * sizes[0]  # each says how large the next one may be
    assert_array_equal(scan.result().rows_in(data_of(listing)), brute(listing, pattern))


@in_one_test("text", PATTERNS)
def test_slices_may_run_in_any_order(
    listing: Listing, text: str, expected: Callable[[str], NDArray[np.int64]]
) -> None:
    pattern = compile_pattern(text)
    for within in (
        None,
        part_of(listing.rows(np.arange(0, COUNT, 2))),
        part_of(listing.rows(np.arange(7, COUNT, 97))),
    ):
        scan, chance, under_way = scan_of(listing, pattern, within), random.Random(1), []
        while True:
            work = scan.take()
            if work is not None:
                under_way.append(work)
            elif not under_way:
                break
            if work is None or len(under_way) > 3:
                under_way.pop(chance.randrange(len(under_way)))()
        data = data_of(listing)
        wanted = np.arange(COUNT) if within is None else within.rows_in(data)
        assert_array_equal(scan.result().rows_in(data), those_of(expected(text), wanted))


def slices_at_once(listing: Listing, text: str) -> int:
    """How many slices are handed out before one has run; the first is prepared and begun."""
    scan = scan_of(listing, compile_pattern(text))
    while not scan._searches and (work := scan.take()) is not None:
        work()
    taken = []
    while (work := scan.take()) is not None:
        taken.append(work)
    return len(taken)


def test_what_keeps_the_lock_is_searched_by_one_thread_at_a_time(random_listing: Listing) -> None:
    assert slices_at_once(random_listing, "persistent://t/n/.*abc.*") == 1
    assert slices_at_once(random_listing, "persistent://t/n/.*[ab][cd][ef].*") == 1
    assert slices_at_once(random_listing, "persistent://t/n/.*(a|b).*") > 1


def test_a_search_holds_the_listing_no_longer_than_it_is_there() -> None:
    """A search that is given up frees its listing at once: its memory is counted until then."""
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names_of("plain"))
    scan = scan_of(listing, compile_pattern(SLOW))
    for _ in range(3):
        work = scan.take()
        assert work is not None
        work()
        del work
    gone = weakref.ref(listing)
    del listing, scan
    assert gone() is None


def test_what_is_quick() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names_of("plain"))
    data, whole = data_of(listing), part_of(listing.all())
    assert matches_are_quick(data, whole, compile_pattern("t/n/device-01.*"))
    assert not matches_are_quick(data, whole, compile_pattern("t/n/.*[02468]-temp.*"))
    few = part_of(listing.rows(np.arange(0, COUNT, 900)))
    assert matches_are_quick(data, few, compile_pattern("t/n/.*[02468]-temp.*"))
    assert not matches_are_quick(data, part_of(listing.rows(np.arange(0, COUNT, 90))), compile_pattern(SLOW))
    empty = Listing.from_names(NAMESPACE, Mode.PERSISTENT, [])
    assert matches_are_quick(data_of(empty), part_of(empty.all()), compile_pattern(SLOW))
