"""Filters of topics by patterns: against matching name by name, chunk by chunk, and what is remembered."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.listing import Listing, data_of
from broker_core.listing.selections.topic_filter import TopicFilter, TopicPatterns, filtered
from broker_core.names import Mode, NamespaceName, TopicName
from tests.support.chunks import tiny_chunks
from tests.support.examples import examples

NAMESPACE = NamespaceName("a", "b")
TEXT = st.text(st.sampled_from("ab-.x\n\N{PILE OF POO}\ue000"), min_size=1, max_size=5)
NAMES = st.builds(
    lambda domain, local, end: f"{domain}://a/b/{local}{end}",
    st.sampled_from(["persistent", "non-persistent"]),
    TEXT,
    st.sampled_from(["", "-partition-0", "-partition-12", "-partition-01"]),
)
PATTERNS = st.lists(
    st.text(st.sampled_from("ab-.x*?*\n\N{PILE OF POO}\ue000"), min_size=1, max_size=5), max_size=4
)


def own(name: str) -> str:
    return TopicName.parse(name).partitioned_name.local


def matches(pattern: str, name: str) -> bool:
    regex = "".join({"*": ".*", "?": "."}.get(each) or re.escape(each) for each in pattern)
    return re.fullmatch(regex, name, re.DOTALL) is not None


@given(st.lists(NAMES, max_size=30), PATTERNS | st.none(), PATTERNS, st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=examples(75))
def test_columns_and_single_names_are_what_each_pattern_says(
    names: list[str], allowed: list[str] | None, denied: list[str], low: int, high: int
) -> None:
    topics = TopicFilter([(None if allowed is None else TopicPatterns(allowed), TopicPatterns(denied))])

    def shown(name: str) -> bool:
        if any(matches(pattern, own(name)) for pattern in denied):
            return False
        return allowed is None or any(matches(pattern, own(name)) for pattern in allowed)

    with tiny_chunks(64):
        listing = Listing.from_names(NAMESPACE, Mode.ALL, names)
    every = listing.names.to_pylist()
    assert filtered(listing.all(), topics).names.to_pylist() == [name for name in every if shown(name)]
    assert [name for name in every if topics.shows(own(name))] == [name for name in every if shown(name)]
    low, high = min(low, len(every)), min(high, len(every))
    part = filtered(listing.range(min(low, high), max(low, high)), topics)
    assert part.names.to_pylist() == [name for name in every[min(low, high) : max(low, high)] if shown(name)]
    assert part.topics_hash == Listing.from_names(NAMESPACE, Mode.ALL, part.names).topics_hash


def test_all_pairs_have_to_leave_a_name() -> None:
    pairs = [
        (TopicPatterns(["a*"]), TopicPatterns([])),
        (None, TopicPatterns(["*x"])),
    ]
    topics = TopicFilter(pairs)
    names = [f"persistent://a/b/{name}" for name in ("a", "ax", "b", "ay-partition-0")]
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    assert filtered(listing.all(), topics).names.to_pylist() == [names[0], names[3]]
    assert [topics.shows(name) for name in ("a", "ax", "b", "ay")] == [True, False, False, True]
    assert TopicFilter(pairs).key == topics.key != TopicFilter(pairs[:1]).key


def test_a_filter_that_leaves_all_is_the_selection_itself() -> None:
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, ["persistent://a/b/x"])
    whole = listing.all()
    assert filtered(whole, TopicFilter([(TopicPatterns(["?"]), TopicPatterns(["y"]))])) is whole
    assert len(filtered(whole, TopicFilter([(TopicPatterns(["y"]), TopicPatterns([]))]))) == 0


@pytest.mark.parametrize("denied", ["orders-0*", "*7"])  # a stretch of rows, and rows by their bits
def test_a_change_costs_its_chunk(monkeypatch: pytest.MonkeyPatch, denied: str) -> None:
    topics = TopicFilter([(None, TopicPatterns([denied]))])
    names = [f"persistent://a/b/orders-{number:06d}" for number in range(20_000)]
    with tiny_chunks(100_000):
        listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
        made: list[int] = []
        marks = TopicFilter._marks

        def noted(self: TopicFilter, chunk: Chunk) -> np.ndarray[Any, Any]:
            made.append(chunk.size)
            return marks(self, chunk)

        monkeypatch.setattr(TopicFilter, "_marks", noted)
        first = filtered(listing.all(), topics)
        assert len(made) == len(data_of(listing).chunks) > 5
        made.clear()
        again = filtered(listing.all(), topics)
        assert (made, again.topics_hash) == ([], first.topics_hash)
        changed = listing.with_changes([names[5]], ["persistent://a/b/orders-000005a"])
        left = filtered(changed.all(), topics)
        assert len(made) == 1
        fresh = Listing.from_names(NAMESPACE, Mode.PERSISTENT, left.names)
    assert left.topics_hash == fresh.topics_hash
    for chunk in data_of(changed).chunks:
        assert chunk.memo.nbytes <= chunk.memo_limit
