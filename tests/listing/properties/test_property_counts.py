from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core import Listing, Mode
from broker_core.listing.properties.property_counts import count_texts, count_values


@given(st.lists(st.none() | st.sampled_from(["eu", "us", "ap", "é", ""]), max_size=40))
def test_texts_are_counted_the_most_frequent_first(texts: list[str | None]) -> None:
    counted = Counter(text for text in texts if text is not None)
    expected = sorted(counted.items(), key=lambda item: (-item[1], item[0].encode()))
    found = count_texts(pa.array(texts, pa.large_string())).to_pylist()
    assert [(row["value"], row["count"]) for row in found] == expected


def test_a_listing_without_values_is_not_counted() -> None:
    listing = Listing.from_names("t/n", Mode.ALL, ["persistent://t/n/a"])
    assert count_values(listing.all(), "region") is None
