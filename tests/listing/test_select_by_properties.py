"""Selecting topics by properties: against the rows themselves, chunk by chunk, and what is remembered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.changes.version_splice import ListingChange, splice
from broker_core.listing.chunks import build_chunks as building
from broker_core.listing.chunks.build_chunks import ChunkSize, build_chunks
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart
from broker_core.listing.property_values import (
    is_quick_to_select,
    remembered_selection,
    select_by_properties,
)
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.names.name_columns import as_column
from tests.support.chunks import tiny_chunks

NAMESPACE = NamespaceName("a", "b")
EU = {"region": "eu"}

Topics = Mapping[str, Mapping[str, str]]


def listing_of(topics: Topics) -> ListingData:
    """A listing of local names (with ``n:`` of non-persistent topics) with their properties."""
    columns: dict[str, tuple[list[str], dict[str, list[str | None]]]] = {
        domain: ([], {"region": [], "team": []}) for domain in (PERSISTENT, NON_PERSISTENT)
    }
    for name, properties in topics.items():
        names, values = columns[NON_PERSISTENT if name.startswith("n:") else PERSISTENT]
        names.append(name)
        for key, column in values.items():
            column.append(properties.get(key))
    text = pa.large_string()
    return ListingData(
        NAMESPACE,
        Mode.ALL,
        build_chunks(
            NAMESPACE,
            pa.array(columns[PERSISTENT][0], text),
            pa.array(columns[NON_PERSISTENT][0], text),
            {
                domain: {key: pa.array(column, text) for key, column in values.items()}
                for domain, (_, values) in columns.items()
            },
        ),
    )


def names_in(data: ListingData, part: ListingPart) -> set[str]:
    names = data.names(part.pieces_in(data)).to_pylist()
    assert len(set(names)) == len(names) == len(part)
    return {name.rpartition("/")[2] for name in names}


@contextmanager
def medium_chunks() -> Iterator[None]:
    """Chunks that are large enough to remember something."""
    with patch.object(building, "_USED", ChunkSize(100_000, 200_000, 30_000, 64 * 1024)):
        yield


@pytest.fixture
def looked_through() -> Iterator[list[int]]:
    """The sizes of the chunks that were looked through."""
    sizes: list[int] = []
    whole = Chunk.with_values

    def counted(chunk: Chunk, pairs: Mapping[str, str]) -> ChunkRows:
        sizes.append(chunk.size)
        return whole(chunk, pairs)

    with patch.object(Chunk, "with_values", counted):
        yield sizes


@given(
    st.dictionaries(
        st.text(st.sampled_from("ab-￮😀"), min_size=1, max_size=4)
        | st.from_regex("n:[a-c]{1,4}", fullmatch=True),
        st.fixed_dictionaries(
            {}, optional={"region": st.sampled_from(["eu", "us", ""]), "team": st.just("x")}
        ),
        max_size=60,
    ),
    st.dictionaries(
        st.sampled_from(["region", "team", "other"]), st.sampled_from(["eu", "us", "", "x", "y"])
    ),
)
def test_it_finds_what_the_rows_say(topics: Topics, pairs: Mapping[str, str]) -> None:
    with tiny_chunks(100):
        data = listing_of(topics)
    expected = {name for name, properties in topics.items() if pairs.items() <= properties.items()}
    assert names_in(data, select_by_properties(data, pairs)) == expected
    assert names_in(data, select_by_properties(data, pairs)) == expected, "remembered, it is the same"


def many(count: int = 20_000) -> Topics:
    return {f"t-{number:06d}": {"region": "eu" if number % 3 else "us"} for number in range(count)}


def test_the_whole_answer_is_remembered(looked_through: list[int]) -> None:
    with medium_chunks():
        data = listing_of(many(100))
    assert remembered_selection(data, EU) is None
    first = select_by_properties(data, EU)
    assert remembered_selection(data, dict(EU)) is first
    assert select_by_properties(data, EU) is first
    assert sum(looked_through) == 100
    assert remembered_selection(data, {"region": "us"}) is None
    everything = remembered_selection(data, {})
    assert everything is not None
    assert everything.is_whole(data)


def test_after_a_change_only_new_chunks_are_looked_through(looked_through: list[int]) -> None:
    with medium_chunks():
        data = listing_of(many())
        assert len(data.chunks) > 3
        before = select_by_properties(data, EU)
        assert len(looked_through) == len(data.chunks)
        looked_through.clear()
        assert not is_quick_to_select(data, {"region": "us"}) or data.size <= 50_000
        name = as_column(["persistent://a/b/t-000001x"])
        moved = splice(data, ListingChange(as_column([]), name, {"region": ["eu"], "team": [None]}))
        after = select_by_properties(moved, EU)
    assert len(looked_through) == 1
    assert names_in(moved, after) == names_in(data, before) | {"t-000001x"}


def test_what_is_remembered_is_bounded() -> None:
    with medium_chunks():
        data = listing_of(many(1000))
    for number in range(1000):
        select_by_properties(data, {"region": str(number)})
    assert 0 < data.memo.nbytes <= data.memo.limit


def test_rows_that_a_chunk_does_not_remember_are_counted_by_the_listing() -> None:
    with medium_chunks():
        data = listing_of(many())
        with patch.object(Chunk, "memo_limit", 0):
            part = select_by_properties(data, EU)
    assert data.memo.nbytes > part.nbytes or remembered_selection(data, EU) is None


def test_what_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.listing.property_values._QUICK", 10_000)
    with medium_chunks():
        data = listing_of(many())
        assert is_quick_to_select(listing_of(many(10_000)), EU)
        assert not is_quick_to_select(data, EU)
        select_by_properties(data, EU)
        assert is_quick_to_select(data, EU)
        name = as_column(["persistent://a/b/t-000001x"])
        moved = splice(data, ListingChange(as_column([]), name, {"region": ["eu"], "team": [None]}))
        assert remembered_selection(moved, EU) is None
        assert is_quick_to_select(moved, EU), "one chunk is new"
