"""A selector picks what its pattern and all of its properties match."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from broker_core import EncodedNames
from broker_core_spark.batch.segments.match_selectors import compiled_patterns, match_selectors
from broker_core_spark.format.canonical_question import NameSelector


def texts(*values: str | None) -> pa.LargeStringArray:
    return pa.array(values, pa.large_string())


def test_properties_restrict_each_kind_of_match() -> None:
    names = EncodedNames.of("a/b", "persistent", [f"orders-{number}" for number in range(10)])
    values = {"k": texts(*("x" if number % 2 else None for number in range(10)))}
    requested = [
        NameSelector(None),
        NameSelector(None, (("k", "x"),)),
        NameSelector("a/b/orders-.*", (("k", "x"),)),
        NameSelector(".*[123]", (("k", "x"),)),
        NameSelector(".*", (("k", "y"),)),
    ]
    found: dict[bytes, Any] = dict(
        match_selectors(names, values, [(one.key, one) for one in requested], compiled_patterns())
    )
    rows = {
        key: list(range(*match)) if isinstance(match, tuple) else match.tolist()
        for key, match in found.items()
    }
    assert rows == {
        requested[0].key: list(range(10)),
        requested[1].key: [1, 3, 5, 7, 9],
        requested[2].key: [1, 3, 5, 7, 9],
        requested[3].key: [1, 3],
        requested[4].key: [],
    }
