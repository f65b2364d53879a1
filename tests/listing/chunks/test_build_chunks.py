"""Building the chunks of a listing: checks, order, size, and the encoded fields."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core import Listing
from broker_core.errors import InvalidListing
from broker_core.listing.chunks.build_chunks import (
    build_chunks,
    checked_local_names,
    chunk_size,
    chunks_of_few,
    cut_chunk,
    cuts_by_size,
    joined_chunks,
)
from broker_core.listing.fields.fields_codec import encode_fields
from broker_core.names import Mode
from broker_core.names.name_columns import split_full_names
from tests.support.topics import (
    NAMESPACE,
    decoded_topics,
    full_names,
    listing_of,
    local_names,
    persistent,
    visible,
)

# Both sides of the lengths at which a varint grows, in bytes.
EDGES = [1, 126, 127, 128, 129, 16_382, 16_383, 16_384, 16_385, 32_767]


def joined(names: list[str]) -> pa.LargeStringArray:
    return pa.array([f",{name}" for name in names], pa.large_string())


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["a"],
        ["a", "b", "c"],
        ["x" * size for size in EDGES],
        ["x" * size for size in reversed(EDGES)],
        ["x" * 127, "y" * 127],
        ["x" * 128, "y" * 20_000, "z"],
        ["é" * 64, "é" * 63, "😀" * 32],
        ["x" * 200, "y" * 300],
    ],
    ids=lambda names: f"{len(names)} names",
)
def test_fields_are_encoded_as_protobuf_does(names: list[str]) -> None:
    fields = encode_fields(joined(names))
    assert decoded_topics(b"".join(fields.to_pylist())) == names
    for field, name in zip(fields.to_pylist(), names, strict=True):
        assert decoded_topics(field) == [name]


@given(st.lists(st.sampled_from(EDGES).flatmap(lambda size: st.integers(max(size - 1, 1), size)), max_size=8))
def test_any_lengths_beside_each_other(sizes: list[int]) -> None:
    names = [chr(ord("a") + index) * size for index, size in enumerate(sizes)]
    assert decoded_topics(b"".join(encode_fields(joined(names)).to_pylist())) == names


def test_what_is_encoded_is_not_changed() -> None:
    column = joined(["a", "bb", "x" * 130])
    before = column.to_pylist()
    encode_fields(column)
    encode_fields(column[1:])
    assert column.to_pylist() == before


@given(st.lists(local_names(), max_size=30), st.lists(local_names(), max_size=6))
def test_the_chunks_are_in_order(stored: list[str], other: list[str]) -> None:
    chunks = build_chunks(NAMESPACE, pa.array(stored, pa.large_string()), pa.array(other, pa.large_string()))
    names = [f"persistent://t/n/{name}" for name in stored]
    names += [f"non-persistent://t/n/{name}" for name in other]
    assert [name for chunk in chunks for name in chunk.names(0, chunk.size).to_pylist()] == visible(names)
    for chunk in chunks:
        assert 0 < chunk.size <= chunk_size().rows
        assert chunk.fields_size <= chunk_size().most or chunk.size == 1
        assert all(name.startswith(f"{chunk.domain}:") for name in chunk.names(0, chunk.size).to_pylist())


def names_of(*columns: list[str] | None) -> list[str]:
    given_ = [None if column is None else pa.array(column, pa.large_string()) for column in columns]
    chunks = build_chunks(NAMESPACE, given_[0], given_[1])
    return [name for chunk in chunks for name in chunk.names(0, chunk.size).to_pylist()]


def test_a_domain_may_be_missing() -> None:
    assert names_of(["b", "a"], None) == persistent("a", "b")
    assert names_of(None, ["b"]) == ["non-persistent://t/n/b"]
    assert names_of(None, None) == names_of([], []) == []


def test_properties_go_with_their_names() -> None:
    names = [f"{number}" for number in reversed(range(100))]
    values = [None if number % 3 == 0 else f"v{number % 5}" for number in reversed(range(100))]
    shuffled = {"persistent": {"team": pa.array([*values, "x"], pa.large_string())}}
    chunks = build_chunks(NAMESPACE, pa.array([*names, "__change_events"], pa.large_string()), None, shuffled)
    found: dict[str, str | None] = {}
    for chunk in chunks:
        texts = chunk.names(0, chunk.size).to_pylist()
        found.update(zip(texts, chunk.properties["team"].column().to_pylist(), strict=True))
    assert found == dict(zip(persistent(*names), values, strict=True))


def test_a_chunk_is_cut_by_its_bytes_and_its_rows() -> None:
    wanted = chunk_size()
    assert cuts_by_size(wanted.most, wanted.rows) == [0, wanted.rows]
    assert len(cuts_by_size(wanted.most + 1, 1000)) > 2
    assert len(cuts_by_size(10, wanted.rows + 1)) > 2
    assert cuts_by_size(100 * wanted.most, 2) == [0, 1, 2]


def test_chunks_are_joined_and_cut_again() -> None:
    listing = listing_of(persistent(*(f"{number:04}{'é' * (number % 40)}" for number in range(3000))))
    chunks = build_chunks(NAMESPACE, listing_names(listing), None)
    whole = joined_chunks(chunks)
    assert whole.names(0, whole.size).equals(listing.names)
    again = cut_chunk(whole)
    assert [
        name for part in again for name in part.names(0, part.size).to_pylist()
    ] == listing.names.to_pylist()
    assert max(part.fields_size for part in again) <= chunk_size().most


def listing_names(listing: Listing) -> pa.LargeStringArray:
    return pa.array([name.rpartition("/")[2] for name in listing.names.to_pylist()], pa.large_string())


@pytest.mark.parametrize("bad", [["a", ""], ["a/b"], ["a\0"], [None], [1], ["x" * 40_000]], ids=str)
def test_local_names_are_checked(bad: list[object]) -> None:
    with pytest.raises(InvalidListing):
        checked_local_names(bad)


def test_checked_names_are_a_column() -> None:
    assert checked_local_names(pa.array(["a", "b"])).type == pa.large_string()


@given(st.lists(full_names(), max_size=12), st.data())
def test_chunks_of_a_few_names_are_those_of_columns(names: list[str], data: st.DataObject) -> None:
    names = list(dict.fromkeys(names))
    values = [data.draw(st.sampled_from([None, "a", ""])) for _ in names]
    column = pa.array(names, pa.large_string())
    by_domain = {
        domain: {
            "team": pa.array(
                [value for name, value in zip(names, values, strict=True) if name.startswith(f"{domain}:")],
                pa.large_string(),
            )
        }
        for domain in ("persistent", "non-persistent")
    }
    expected = build_chunks(NAMESPACE, *split_full_names(column, NAMESPACE, Mode.ALL), by_domain)
    made = chunks_of_few(NAMESPACE, Mode.ALL, names, {"team": values})
    assert [chunk.domain for chunk in made] == [chunk.domain for chunk in expected]
    for chunk, other in zip(made, expected, strict=True):
        assert bytes(chunk.body(0, chunk.size)) == bytes(other.body(0, other.size))
        assert chunk.is_plain == other.is_plain
        assert chunk.crc == other.crc
        assert chunk.properties["team"].column().equals(other.properties["team"].column())


def test_one_of_a_few_names_that_is_there_twice_is_listed_once() -> None:
    (chunk,) = chunks_of_few(NAMESPACE, Mode.ALL, persistent("b", "a", "b"), {})
    assert chunk.names(0, chunk.size).to_pylist() == persistent("a", "b")


@pytest.mark.parametrize(
    ("bad", "mode"),
    [
        ("persistent://t/other/a", Mode.ALL),
        ("non-persistent://t/n/a", Mode.PERSISTENT),
        ("a", Mode.ALL),
        ("persistent://t/n/", Mode.ALL),
        ("persistent://t/n/a/b", Mode.ALL),
        (f"persistent://t/n/{'x' * 40_000}", Mode.ALL),
    ],
    ids=range(6),
)
def test_a_few_names_and_columns_refuse_the_same(bad: str, mode: Mode) -> None:
    with pytest.raises(InvalidListing) as few:
        chunks_of_few(NAMESPACE, mode, [bad], {})
    with pytest.raises(InvalidListing) as many:
        split_full_names(pa.array([bad], pa.large_string()), NAMESPACE, mode)
    assert str(few.value) == str(many.value)
