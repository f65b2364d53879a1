"""Names with the details of their topics, in blocks, whatever their sizes are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core import Position
from broker_core.listing.details import Details
from broker_core.listing.rendered import details as module
from broker_core.listing.rendered.details import detail_blocks, detail_json_items, detail_size
from broker_core.listing.rendered.name_blocks import RenderedNames
from broker_core.listing.rendered.pieces import BLOCK, BlockSize
from tests.listing.pages.test_page_walk import FULL
from tests.support.topics import listing_of, persistent

#: Bytes of a chunk of the second round.
TINY_CHUNK = 400


def details_of(names: list[str]) -> Details:
    """One row for each topic of names in the order of pages: its own name as a property."""
    topics = list(dict.fromkeys(Position.of(name).base for name in names))
    return Details.of(topics, properties=[{"of": topic} for topic in topics])


def rows_of(names: RenderedNames, details: Details, most: int) -> list[list[tuple[str, str]]]:
    """Of each block its names, each with the topic that its details are of."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NAMES", 3)
        for block in detail_blocks(names, details, BlockSize(most)):
            topics = block.details.column("topic").take(pa.array(block.rows)).to_pylist()
            found.append(list(zip(block.names.to_pylist(), topics, strict=True)))
    return found


@given(st.lists(FULL, max_size=20), st.integers(100, 2000))
def test_each_name_has_the_details_of_its_topic(names: list[str], most: int) -> None:
    listing = listing_of(names)
    ordered = [each.name for each in sorted(map(Position.of, listing.names.to_pylist()))]
    details = details_of(ordered)
    expected = [(name, Position.of(name).base) for name in ordered]
    for shown in (pa.array(ordered, pa.large_string()), listing.all()):
        blocks = rows_of(shown, details, most)
        assert [row for block in blocks for row in block] == expected
        for block in blocks:
            assert len(block) == 1 or sum(len(name) + 102 + len(topic) for name, topic in block) <= most


def test_large_properties_are_in_blocks_of_their_own() -> None:
    names = persistent(*(f"a-partition-{number}" for number in range(5)))
    details = Details.of(persistent("a"), properties=[{"large": "x" * 5000}])
    assert [len(block) for block in rows_of(pa.array(names, pa.large_string()), details, 6000)] == [1] * 5


@pytest.mark.parametrize("topics", [["a"], ["a", "c"], ["b", "a"], ["a", "b", "c"], []])
def test_details_of_other_topics(topics: list[str]) -> None:
    page = pa.array(persistent("a", "b"), pa.large_string())
    with pytest.raises(ValueError, match="details"):
        list(detail_blocks(page, Details.of(persistent(*topics)), BlockSize()))


def test_the_size_is_about_that_of_what_is_shown() -> None:
    names = persistent(*(f"{number:050d}" for number in range(1000)))
    details = Details.of(names, partitions=[0] * 1000, properties=[{"region": "eu" * 10}] * 1000)
    for shown in (pa.array(names, pa.large_string()), listing_of(names).all()):
        size = sum(map(len, detail_json_items(shown, details, ["partitions", "properties"])))
        assert 0.8 * size <= detail_size(shown, details) <= 1.5 * size
    assert detail_size(pa.array([], pa.large_string()), Details.of([], properties=[])) == 0


def test_the_size_is_large_where_partitions_may_repeat_large_properties() -> None:
    names = persistent("a", *(f"b-partition-{number}" for number in range(600)))
    details = Details.of(persistent("a", "b"), properties=[{}, {"large": "x" * 100}])
    assert detail_size(pa.array(names, pa.large_string()), details) >= BLOCK
