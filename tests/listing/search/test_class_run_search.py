"""Finding names that have a run of bytes, against a search name by name."""

from __future__ import annotations

import random
import re

import numpy as np
import pyarrow as pa
import pytest

from broker_core.listing.search.substring_search import ClassRun
from tests.support.one_test import in_one_test

RUNS = [["ab"], ["ab", "c"], ["a", "bc", "abc"], ["abc"] * 4, ["a", "b", "c", "abc", "c", "b", "a", "c"]]


@pytest.mark.parametrize("run", RUNS, ids="".join)
def test_each_name_with_the_run_is_found(run: list[str]) -> None:
    check(run, 150)


def check(run: list[str], times: int) -> None:
    chance = random.Random(str(run))
    wanted = re.compile("".join(f"[{some}]" for some in run).encode())
    for _ in range(times):
        names = [
            "".join(chance.choices("abc", k=chance.randrange(9))).encode()
            for _ in range(chance.randrange(20))
        ]
        every = [*names, *[b"."] * 200]
        chance.shuffle(every)
        text, offsets = b"cab" + b"".join(every) + b"cab", np.cumsum([3, *map(len, every)], dtype=np.int64)
        low = chance.randrange(len(every))
        high = chance.randrange(low, len(every) + 1)
        rows = ClassRun([frozenset(some.encode()) for some in run]).rows(
            pa.py_buffer(text), offsets, low, high
        )
        having = {row for row in range(low, high) if wanted.search(every[row])}
        if rows is None:
            assert 3 * sum(every[row] != b"." for row in range(low, high)) > high - low
        else:
            assert rows.tolist() == sorted(set(rows.tolist()))
            assert having <= set(rows.tolist()) <= {row for row in range(low, high) if every[row] != b"."}


@in_one_test("block", [1, 2, 3, 7, 8, 9, 64])
@in_one_test("run", RUNS)
def test_a_run_is_found_across_blocks(run: list[str], block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.listing.search.substring_search._BLOCK", block)
    check(run, 30)


def test_a_run_that_most_names_have_is_given_up() -> None:
    names = [b"abc"] * 5000
    offsets = np.cumsum([0, *map(len, names)], dtype=np.int64)
    run = ClassRun([frozenset(b"ab"), frozenset(b"bc")])
    assert run.rows(pa.py_buffer(b"".join(names)), offsets, 0, 5000) is None
    none = ClassRun([frozenset(b"x")]).rows(pa.py_buffer(b"".join(names)), offsets, 0, 5000)
    assert none is not None
    assert len(none) == 0


def test_a_run_is_of_one_to_eight_bytes() -> None:
    for size in (0, 9):
        with pytest.raises(ValueError, match="one to eight"):
            ClassRun([frozenset(b"a")] * size)
