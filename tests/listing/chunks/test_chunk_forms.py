"""Forms of chunks: plain ones are the ends of the fields, sorted ones have the partitions in order of their numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from broker_core.listing.chunks.chunk_forms import PlainForms, SortedForms, are_plain
from broker_core.listing.fields.fields_codec import encode_fields
from broker_core.listing.listing import data_of
from broker_core.names import Mode
from tests.support.topics import listing_of, matched_form, persistent


@pytest.mark.parametrize("size", [1, 120, 20_000])
def test_plain_forms_have_what_sorted_ones_have(size: int) -> None:
    names = persistent(*(f"{number:04}é{'x' * (number % 30 * size // 30)}" for number in range(100)))
    (chunk,) = data_of(listing_of(names, Mode.PERSISTENT)).chunks
    plain, sorted_ = chunk.forms, SortedForms.of(chunk.names(0, 100), len("persistent://"))
    assert isinstance(plain, PlainForms)
    rows = np.array([3, 50, 99])
    for forms in (plain, sorted_):
        assert forms.is_identity
        assert len(forms) == 100
        assert forms.between(5, 70).to_pylist() == [matched_form(name) for name in names[5:70]]
        assert forms.at(rows).to_pylist() == [matched_form(names[row]) for row in rows]
        assert forms.range(b"t/n/0010", b"t/n/002") == (10, 20)
        assert forms.range(b"", b"\xff") == (0, 100)
        assert forms.range(b"t/n/0010", b"t/n/0010") == (10, 10)
        assert forms.range(b"t/o", b"t/p") == (100, 100)
        assert forms.bounds == (matched_form(names[0]).encode(), matched_form(names[-1]).encode())
    assert plain.nbytes == 0 < sorted_.nbytes


def test_partitions_are_in_the_order_of_their_numbers() -> None:
    names = persistent("a", *(f"a-partition-{number}" for number in (0, 1, 2, 10, 11, 9)), "a-0", "a-z")
    (chunk,) = data_of(listing_of(names, Mode.PERSISTENT)).chunks
    shown = chunk.names(0, chunk.size).to_pylist()
    rows = chunk.forms.rows(np.arange(chunk.size))
    ordered = [shown[row].rpartition("/")[2] for row in rows]
    assert ordered[0] == "a"
    assert ordered[1:7] == [f"a-partition-{number}" for number in (0, 1, 2, 9, 10, 11)]
    assert ordered[7:] == ["a-0", "a-z"]
    assert chunk.forms.range(b"t/n/a", b"t/n/a\0") == (0, 7)


def test_what_is_plain() -> None:
    def plain(*names: str) -> bool:
        return are_plain(encode_fields(pa.array([f",{name}" for name in names], pa.large_string())))

    assert plain("persistent://t/n/é\uabcd", *("x" * size for size in range(100, 300)))
    for text in ("x-partition-", "😀", "\ue000", "\uffee"):
        assert not plain("a", f"persistent://t/n/{text}1")
    assert plain()
