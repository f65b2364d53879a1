"""Many patterns in one pass find the same rows as one pattern after the other."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import re2

from broker_core.errors import InvalidPattern
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.listing import Listing
from broker_core.listing.search import pattern_set
from broker_core.listing.search.pattern_set import match_patterns
from broker_core.names import Mode, NamespaceName
from broker_core.names.name_columns import column_data
from broker_core.patterns import TopicsPattern, compile_pattern
from tests.support.vectors import pattern_vectors

NAMESPACE = "public/default"

#: Bytes of a chunk of the second round.
TINY_CHUNK = 2000


def listing_of(names: list[str]) -> Listing:
    column = pa.array(names, pa.large_string())
    return Listing.from_columns(NamespaceName.parse(NAMESPACE), Mode.PERSISTENT, column, None)


def chunk_of(listing: Listing) -> Chunk:
    """All names of a listing as one chunk."""
    namespace = NamespaceName.parse(NAMESPACE)
    return Chunk(namespace, "persistent", *column_data(listing.all().column()))


def differences(listing: Listing, patterns: list[TopicsPattern]) -> list[str]:
    found = dict(match_patterns(chunk_of(listing), patterns))
    assert sorted(found) == list(range(len(patterns)))
    wrong = []
    for index, pattern in enumerate(patterns):
        rows: Any = found[index]
        rows = np.arange(*rows) if isinstance(rows, tuple) else rows
        if not np.array_equal(rows, listing.matching(pattern).row_array):
            wrong.append(pattern.raw)
    return wrong


@pytest.fixture(scope="module")
def many() -> Listing:
    pick = random.Random(3)
    words = ["orders", "payments", "naïve", "😀mile", "\ue000priv", "Daily"]
    names = [f"{pick.choice(words)}-{pick.choice(words)}-{number:05}" for number in range(3000)]
    names += [f"{pick.choice(words)}-partition-{number}" for number in range(500)] + ["line\nbreak-orders-1"]
    return listing_of(names)


def test_patterns_of_all_kinds(many: Listing) -> None:
    pick = random.Random(4)
    texts = [
        ".*",
        f"{NAMESPACE}/orders.*",
        f"{NAMESPACE}/naïve-partition-3",
        f"{NAMESPACE}/naïve",
        ".*\\d",
        "a",
    ]
    texts += [f".*-{pick.choice(['orders', 'Daily', '😀mile', '0012'])}-.*{number}.*" for number in range(60)]
    texts += [f"(?i).*DAILY.*{number}" for number in range(8)] + [
        f".*{number}.*\n?.*7" for number in range(8)
    ]
    texts += [f"{NAMESPACE}/(orders|payments)-[^-]*-0*{number}" for number in range(20)]
    texts += [".*orders(?:.|\n)*", "(?s).*break.*", ".*[^a-z]{9}", "\\Qpublic/default/orders", "^.*1$"]
    assert differences(many, [compile_pattern(text) for text in texts]) == []


def test_recorded_patterns_over_recorded_names() -> None:
    vectors = pattern_vectors()
    listing = listing_of([*vectors["stored_names"], *(f"filler-{number}" for number in range(1000))])
    patterns = []
    for case in vectors["cases"]:
        if case["topics_pattern"] is None:
            continue
        try:
            pattern = compile_pattern(case["topics_pattern"])
        except InvalidPattern:
            continue
        if pattern.supported:
            patterns.append(pattern)
    assert len(patterns) > 100
    assert differences(listing, patterns) == []


def test_a_filter_that_does_not_fit_is_halved(many: Listing, monkeypatch: pytest.MonkeyPatch) -> None:
    real = re2.Filter
    sizes: list[int] = []

    class Small:
        """Refuses to compile more than ten patterns, as the real one does some thousands."""

        def __init__(self) -> None:
            self.filter = real()
            self.added = 0

        def Add(self, text: str, options: Any) -> None:  # noqa: N802
            self.added += 1
            self.filter.Add(text, options)

        def Compile(self) -> None:  # noqa: N802
            if self.added > 10:
                raise re2.error("failed to compile Filter")
            sizes.append(self.added)
            self.filter.Compile()

        def Match(self, text: Any, potential: bool) -> Any:  # noqa: N802
            return self.filter.Match(text, potential)

    monkeypatch.setattr(re2, "Filter", Small)
    pattern_set._filters.cache_clear()
    patterns = [compile_pattern(f".*orders.*{number:03}") for number in range(45)]
    assert differences(many, patterns) == []
    assert sum(sizes) >= 45
    assert max(sizes) <= 10
    pattern_set._filters.cache_clear()


def test_a_filter_that_lies_is_not_believed(many: Listing, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should the filter ever leave out what matches, the sample shows it and the pattern runs over the column."""

    class Liar:
        def __init__(self) -> None:
            self.asked = 0

        def Add(self, _text: str, _options: Any) -> None:  # noqa: N802
            pass

        def Compile(self) -> None:  # noqa: N802
            pass

        def Match(self, _text: Any, _potential: bool) -> None:  # noqa: N802
            return None

    monkeypatch.setattr(re2, "Filter", Liar)
    pattern_set._filters.cache_clear()
    assert differences(many, [compile_pattern(f".*{number}.*") for number in range(10)]) == []
    pattern_set._filters.cache_clear()


def test_an_unsupported_pattern_is_an_error(many: Listing) -> None:
    with pytest.raises(InvalidPattern):
        list(match_patterns(chunk_of(many), [compile_pattern("(?=ahead)")]))


def test_a_listing_without_names() -> None:
    assert dict(match_patterns(chunk_of(listing_of([])), [compile_pattern(".*"), compile_pattern("x")])) == {
        0: (0, 0),
        1: (0, 0),
    }
