"""Codes of properties: they keep the value of each row through cuts, joins, changes and splices."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from broker_core.listing.chunks.property_codes import NO_VALUE, PropertyCodes
from tests.support.examples import examples
from tests.support.one_test import in_one_test


def codes_of(values: list[str | None]) -> PropertyCodes:
    return PropertyCodes.of(pa.array(values, pa.large_string()))


def drawn(pick: random.Random, count: int) -> list[str | None]:
    return [pick.choice([None, "", "a", "b", "é", f"v{pick.randint(0, 500)}"]) for _ in range(count)]


def test_a_value_and_none() -> None:
    codes = codes_of(["a", None, "b", "a", ""])
    assert codes.column().to_pylist() == ["a", None, "b", "a", ""]
    rows = codes.rows_with("a")
    assert rows is not None
    assert rows.tolist() == [True, False, False, True, False]
    assert codes.rows_with("c") is None
    assert codes.code("c") == NO_VALUE
    nothing = PropertyCodes.none(3)
    assert nothing.column().to_pylist() == [None] * 3
    assert nothing.rows_with("a") is None


@in_one_test("seed", range(examples(20)))
def test_changes_keep_the_values(seed: int) -> None:
    pick = random.Random(seed)
    values = drawn(pick, pick.randint(1, 60))
    codes = codes_of(values)
    for _ in range(5):
        gone = sorted(pick.sample(range(len(values)), pick.randint(0, min(3, len(values) - 1))))
        fresh = drawn(pick, pick.randint(0, 4))
        put = sorted(pick.choices(range(len(values) + 1), k=len(fresh)))
        codes = codes.spliced(np.array(gone, np.int64), np.array(put, np.int64), codes_of(fresh))
        expected: list[str | None] = []
        waiting = list(zip(put, fresh, strict=True))
        for row in range(len(values) + 1):
            expected += [value for place, value in waiting if place == row]
            if row < len(values) and row not in gone:
                expected.append(values[row])
        values = expected
        assert codes.column().to_pylist() == values
        assert codes.codes.dtype == np.int32
        if values:
            rows = sorted(pick.sample(range(len(values)), pick.randint(0, len(values))))
            others = drawn(pick, len(rows))
            codes = codes.with_values(rows, others)
            for row, value in zip(rows, others, strict=True):
                values[row] = value
            assert codes.values_at(rows) == others
            assert codes.column().to_pylist() == values
            low, high = sorted(pick.choices(range(len(values) + 1), k=2))
            assert codes.stretch(low, high).column().to_pylist() == values[low:high]
            both = PropertyCodes.joined([codes.stretch(0, low), codes.stretch(low, len(values))])
            assert both.column().to_pylist() == values


def test_values_that_nobody_has_any_more_go() -> None:
    codes = codes_of(["a", "b"])
    for number in range(3000):
        codes = codes.with_values([0], [f"value-{number}"])
    assert len(codes.values) < 1100
    assert codes.column().to_pylist() == ["value-2999", "b"]
    assert codes.nbytes < 20_000
