"""Chunks: names, hashes and properties of consecutive topics, and checks of those that were encoded elsewhere."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from broker_core.errors import InvalidListing
from broker_core.listing.chunks.chunk import Chunk, rows_key
from broker_core.listing.chunks.property_codes import PropertyCodes
from broker_core.listing.listing import data_of
from broker_core.listing.listing_hash import crc_text, topics_hash, without_first_comma
from broker_core.names import Mode
from broker_core.names.name_columns import column_data
from tests.support.topics import NAMESPACE, listing_of, persistent

NAMES = persistent(*(f"{number:05}" for number in range(10_000)))


@pytest.fixture(name="chunk")
def chunk_of_names() -> Chunk:
    (chunk,) = data_of(listing_of(NAMES, Mode.PERSISTENT)).chunks
    return Chunk(NAMESPACE, "persistent", chunk.fields, chunk.field_offsets)


def test_names_and_bytes(chunk: Chunk) -> None:
    rows = np.array([3, 77, 9999])
    assert chunk.names(10, 20).to_pylist() == NAMES[10:20]
    assert chunk.names(3, 10_000, rows).to_pylist() == [NAMES[row] for row in rows]
    assert chunk.name(77).decode() == NAMES[77]
    assert bytes(chunk.body(0, 2)) == bytes(memoryview(chunk.fields)[: 2 * chunk.fields_size // 10_000])
    with pytest.raises(ValueError, match="read-only"):
        chunk.field_offsets[0] = 1


def test_hashes_are_computed_once(chunk: Chunk) -> None:
    assert chunk.known_crc is None
    assert crc_text(without_first_comma(chunk.crc)) == topics_hash(NAMES)
    assert chunk.known_crc is not None
    assert chunk.crc is chunk.text_crc(0, 10_000)
    for low, high in ((0, 10), (0, 32), (40, 73), (100, 9000), (5000, 10_000), (7, 7)):
        assert crc_text(without_first_comma(chunk.text_crc(low, high))) == topics_hash(NAMES[low:high])
    rows = np.array([0, 500, 9999])
    found = chunk.text_crc(0, 10_000, rows)
    assert crc_text(without_first_comma(found)) == topics_hash(NAMES[row] for row in rows)


def test_hashes_of_a_few_names_whose_lengths_take_more_bytes_than_one() -> None:
    names = sorted(
        persistent(*("n" * size for size in (1, 100, 101, 102, 103, 104, 105, 200, 16_400, 20_000)))
    )
    (chunk,) = data_of(listing_of(names, Mode.PERSISTENT)).chunks
    for low in range(10):
        for high in range(low, 11):
            assert crc_text(without_first_comma(chunk.text_crc(low, high))) == topics_hash(names[low:high])
    assert chunk.form_range(b"t/n/" + b"n" * 101, b"t/n/" + b"n" * 20_000) == (2, 9)


def test_what_it_holds_is_counted(chunk: Chunk) -> None:
    own = chunk.fields_size + chunk.field_offsets.nbytes
    assert chunk.column_bytes == own
    room = chunk.nbytes  # forms may have to be made
    assert room >= 2 * chunk.fields_size + chunk.field_offsets.nbytes
    assert chunk.is_plain
    assert chunk.column_bytes == own
    _ = chunk.blocks
    assert own < chunk.column_bytes < own + 100 * 50
    chunk.memo.put("x", 1, 100)
    assert chunk.memo.limit == chunk.memo_limit > 0
    assert chunk.nbytes == room >= chunk.column_bytes + chunk.memo_limit
    known = Chunk(NAMESPACE, "persistent", chunk.fields, chunk.field_offsets)
    known.know_plain(True)
    assert known.nbytes < room - chunk.fields_size


def test_what_is_derived_has_room() -> None:
    names = persistent(*(f"{number // 5:04}-partition-{number % 5}" for number in range(9000)))
    (made,) = data_of(listing_of(names, Mode.PERSISTENT)).chunks
    room = made.nbytes
    _ = made.forms.places(np.arange(3))
    _ = made.blocks
    assert made.column_bytes + made.memo_limit <= room


def test_other_properties_share_the_columns(chunk: Chunk) -> None:
    _ = chunk.crc
    codes = PropertyCodes.of(pa.array(["a", "b"] * 5000, pa.large_string()))
    other = chunk.with_properties({"team": codes})
    assert other.fields is chunk.fields
    assert other.known_crc is not None
    assert other.with_values({"team": "b"}).array.tolist() == list(range(1, 10_000, 2))
    assert len(other.with_values({"team": "b", "x": "y"})) == len(chunk.with_values({"team": "b"})) == 0
    assert len(other.with_values({})) == 10_000


def test_a_newline_and_what_only_looks_like_one() -> None:
    for local, has in (("a\nb", True), ("x" * 1300, False), ("ab", False)):
        (chunk,) = data_of(listing_of(persistent(local), Mode.PERSISTENT)).chunks
        assert chunk.has_newline is has


def test_rows_of_a_range() -> None:
    names = persistent("a", "ab", "ab-partition-10", "ab-partition-2", "abc", "b")
    (chunk,) = data_of(listing_of(names, Mode.PERSISTENT)).chunks
    assert chunk.rows_of_range(b"t/n/ab", b"t/n/ab\0").array.tolist() == [1, 2, 3]
    assert chunk.rows_of_range(b"t/n/ab", b"t/n/ac").array.tolist() == [1, 2, 3, 4]
    assert chunk.rows_of_range(b"", b"\xff").array.tolist() == list(range(6))
    assert len(chunk.rows_of_range(b"t/n/c", b"t/n/d")) == 0


def claimed(fields: list[bytes], domain: str = "persistent") -> Chunk:
    return Chunk.claimed(NAMESPACE, domain, *column_data(pa.array(fields, pa.large_binary())))


def test_claimed_names_are_looked_at_once(chunk: Chunk, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = chunk.column(0, 10_000).to_pylist()
    good = claimed(fields)
    assert not good.is_believed
    good.check(0, 10_000)
    assert good.is_believed
    monkeypatch.setattr(
        "broker_core.listing.chunks.chunk.check_fields", None
    )  # nothing is looked at any more
    good.check(0, 10_000)
    few = claimed(fields)
    with pytest.raises(TypeError):
        few.check(5, 6)


def test_claimed_names_that_are_wrong(chunk: Chunk) -> None:
    fields = chunk.column(0, 100).to_pylist()
    for wrong in (
        [*fields[:50], b"\x12\x7fbroken", *fields[51:]],
        [*fields[:50], fields[51], fields[50], *fields[52:]],
        [*fields[:50], fields[50].replace(b"t/n", b"t/m"), *fields[51:]],
    ):
        bad = claimed(wrong)
        with pytest.raises(InvalidListing):
            bad.names(0, 100)
        with pytest.raises(InvalidListing):
            _ = bad.forms
        assert bad.names(0, 5).to_pylist() == NAMES[:5]
    with pytest.raises(InvalidListing):
        claimed(fields, "non-persistent").check(0, 100)


def test_a_key_of_rows() -> None:
    assert rows_key(np.array([1, 2])) == rows_key(np.array([1, 2])) != rows_key(np.array([1, 3]))
