"""Chunks that a pattern's ranges are in: none is missed, whatever the order of forms in the chunks is."""

from __future__ import annotations

import random

import pytest

from broker_core.listing.listing import data_of
from broker_core.listing.search.chunk_search import candidates, is_whole_range, ranges_in
from broker_core.patterns import compile_pattern
from tests.support.chunks import tiny_chunks
from tests.support.examples import examples
from tests.support.topics import listing_of, matched_form, persistent

LETTERS = "ab😀\ue000"
PATTERNS = [
    "t/n/a.*",
    "t/n/a-0.*",
    "t/n/(a|b-0)x.*",
    "t/n/zz",
    ".*",
    "t/n/😀.*",
    "t/n/a-partition-.*",
    "x/y/.*",
]


@pytest.mark.parametrize("seed", range(examples(3)))
def test_no_chunk_is_missed(seed: int) -> None:
    pick = random.Random(seed)
    locals_ = [
        f"{pick.choice(LETTERS)}{pick.choice(['', '-0', '-partition-3', 'x'])}{pick.randint(0, 300)}"
        + pick.choice(["", f"-partition-{pick.randint(0, 12)}"])
        for _ in range(400)
    ]
    with tiny_chunks(300):
        names = [pick.choice(["", "non-"]) + name for name in persistent(*locals_)]
        data = data_of(listing_of(names))
    assert len(data.chunks) > 10
    for text in PATTERNS:
        pattern = compile_pattern(text)
        assert candidates(data, pattern, make=True) is not None
        found = set(candidates(data, pattern) or ())
        for number, chunk in enumerate(data.chunks):
            shown = chunk.names(0, chunk.size).to_pylist()
            matching = [pattern.matches(name) for name in shown]
            assert number in found or not any(matching)
            inside = {row for low, high in ranges_in(chunk, pattern) for row in range(low, high)}
            forms = chunk.forms.between(0, chunk.size).to_pylist()
            hit = {matched_form(name) for name, matches in zip(shown, matching, strict=True) if matches}
            assert {row for row, form in enumerate(forms) if form in hit} <= inside


def test_a_narrow_range_is_in_few_chunks() -> None:
    with tiny_chunks(300):
        data = data_of(listing_of(persistent(*(f"{number:04}" for number in range(1000)))))
    assert len(candidates(data, compile_pattern("t/n/0500")) or ()) == 1
    assert len(candidates(data, compile_pattern("t/n/.*7.*")) or ()) == len(data.chunks)


def test_forms_are_not_made_to_know_it() -> None:
    with tiny_chunks(300):
        data = data_of(listing_of(persistent(*(f"{number:04}-partition-1" for number in range(100)))))
    pattern = compile_pattern("t/n/00.*")
    assert candidates(data, pattern) is None
    assert candidates(data, pattern, make=True)
    assert candidates(data, pattern)


def test_a_range_that_all_of_matches() -> None:
    (plain,) = data_of(listing_of(persistent("a", "b"))).chunks
    (broken,) = data_of(listing_of(persistent("a", "b\n"))).chunks
    for text, expected in ((".*", (True, True)), ("t/n/a", (True, True)), ("t/n/a.*", (True, False))):
        pattern = compile_pattern(text)
        assert (is_whole_range(plain, pattern), is_whole_range(broken, pattern)) == expected
    assert not is_whole_range(plain, compile_pattern("t/n/a.*x"))
