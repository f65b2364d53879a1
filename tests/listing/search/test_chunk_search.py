"""The search of one chunk: all of it or some rows, in slices of any size."""

from __future__ import annotations

import random

import numpy as np
import pytest

from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.listing import data_of
from broker_core.listing.search.chunk_search import (
    Candidates,
    ChunkSearch,
    Clues,
    RowsSearch,
    first_block,
    keep_matching,
    useful_clues,
    useful_literals,
)
from broker_core.patterns import compile_pattern
from tests.support.topics import NAMESPACE, listing_of, persistent

PATTERNS = [
    "t/n/.*7.*",
    "t/n/(top|x).*[13579]",
    "t/n/top.*-00[0-9]*",
    ".*-x1.*",
    "t/n/(topic-00|topic-03).*9.*",
    ".*[01][34][56]-x[2-4].*",
]


@pytest.mark.parametrize("partitions", [False, True])
@pytest.mark.parametrize("text", PATTERNS)
def test_slices_of_any_size_find_the_same(text: str, *, partitions: bool) -> None:
    pick = random.Random(text)
    names = persistent(
        *(
            f"topic-{number:04}-x{number % 9}" + f"-partition-{number % 3}" * partitions
            for number in range(0, 900, 4)
        )
    )
    (chunk,) = data_of(listing_of(names)).chunks
    shown = chunk.names(0, chunk.size).to_pylist()
    pattern = compile_pattern(text)
    wanted = [row for row, name in enumerate(shown) if pattern.matches(name)]
    some = np.array(sorted(pick.sample(range(225), 75)))
    for size in (1, 700, 10**6):
        searches: list[tuple[ChunkSearch | RowsSearch, list[int]]] = [
            (ChunkSearch(chunk, pattern, useful_clues(chunk.namespace, pattern)), wanted),
            *(
                (
                    RowsSearch(chunk, pattern, ChunkRows.of(some), direct=direct),
                    sorted({*wanted} & {*some.tolist()}),
                )
                for direct in (False, True)
            ),
        ]
        for search, expected in searches:
            slices, low = [], 0
            while low < search.size:
                high = search.until(low, size)
                assert low < high <= search.size
                assert search.weight(low, high) > 0
                slices.append((low, high))
                low = high
            pick.shuffle(slices)
            for low, high in slices:
                keep_matching(search.run(low, high), pattern)
            assert search.result().array.tolist() == expected


def test_literals_that_every_name_has_are_not_searched() -> None:
    assert useful_literals(NAMESPACE, compile_pattern(".*t/n/.*")) == {}
    assert useful_literals(NAMESPACE, compile_pattern(".*sistent.*")) == {}
    assert useful_literals(NAMESPACE, compile_pattern("t/n/.*abc.*de.*")) == {b"abc": 0, b"de": 0}


def test_a_run_of_bytes_is_searched_behind_long_literals() -> None:
    def kinds(text: str) -> list[object]:
        clues = useful_clues(NAMESPACE, compile_pattern(text))
        return [clue if isinstance(clue, bytes) else "run" for clue in clues]

    assert kinds(".*_[01][23][45].*") == ["run", b"_"]
    assert kinds(".*abc[01][23][45].*de.*") == [b"abc", "run", b"de"]
    assert kinds("t/n/[01][23][45].*") == ["run"]
    assert kinds("t/n/[0-9].*x.*") == [b"x"]


def test_the_first_slice_of_a_dear_pattern_is_small() -> None:
    assert first_block(compile_pattern("(?:.*[0-9a].{1,28}[b-f]){10}x")) < first_block(compile_pattern(".*a"))


def test_a_literal_that_most_names_have_is_given_up_and_others_are_found() -> None:
    (dense,) = data_of(listing_of(persistent(*(f"{number:04}-x-y" for number in range(2000))))).chunks
    (rare,) = data_of(
        listing_of(persistent(*(f"{number:04}{'-x' * (number == 7)}" for number in range(2000))))
    ).chunks
    pattern = compile_pattern("t/n/.*-x.*")
    literals = useful_clues(NAMESPACE, pattern)
    for chunk, count in ((dense, 2000), (rare, 1), *[(dense, 2000)] * 6, (rare, 1)):
        search = ChunkSearch(chunk, pattern, literals)
        keep_matching(search.run(0, search.size), pattern)
        assert len(search.result()) == count
    assert literals[b"-x"] >= 4


def test_what_is_known_of_found_rows_is_what_their_chunk_says() -> None:
    # Two chunks of each domain: in one a candidate does not match, and a name is too long for one byte of length.
    listings = [
        listing_of([f"{domain}://t/n/topic-{number:04}{end}" for number, end in rows])
        for domain in ("persistent", "non-persistent")
        for rows in (
            [(number, "-xyz" * (number % 90 == 4)) for number in range(900)],
            [
                (number, "-xyz-7" * (number % 70 == 4) + "-long" * 40 * (number == 74))
                for number in range(900)
            ],
        )
    ]
    chunks = [chunk for listing in listings for chunk in data_of(listing).chunks]
    pattern = compile_pattern(".*-xyz(-7)?(-long)*|.*/topic-0074.*xyz.*z")
    literals: Clues = {b"-xyz": 0}
    searches = [ChunkSearch(chunk, pattern, literals) for chunk in chunks]
    candidates = [some for search in searches for some in search.run(0, search.size)]
    assert len(candidates) == 4
    assert all(some.are_few for some in candidates)
    keep_matching(candidates, pattern)
    for search in searches:
        found = search.result()
        same = ChunkRows.of(found.array)
        wanted = [row for row in range(900) if pattern.matches(search.chunk.name(row).decode())]
        assert found.array.tolist() == wanted
        assert found.known_text is not None
        assert found.text(search.chunk) == same.text(search.chunk)
        assert found.fields_size(search.chunk) == same.fields_size(search.chunk)
        assert bytes(found.body(search.chunk)) == bytes(same.body(search.chunk))


def test_candidates_are_cut_by_their_size() -> None:
    (chunk,) = data_of(listing_of(persistent(*(f"topic-{number:04}" for number in range(100))))).chunks
    search = ChunkSearch(chunk, compile_pattern("t/n/.*1.*"), {})
    every = Candidates(search, np.arange(5, 25))
    first, rest = every.cut(every.weight // 2)
    assert rest is not None
    assert [*first.positions, *rest.positions] == [*range(5, 25)]
    assert len(first.positions) == 10
    assert len(every.cut(1)[0].positions) == 1
    assert every.cut(every.weight) == (every, None)
