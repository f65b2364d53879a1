"""A listing of encoded fields alone is the listing that the names make."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing import Listing
from broker_core.names import Mode
from broker_core_spark.serving.fields_listing import FieldsListing, names_of_fields
from tests.support.topics import NAMESPACE, assert_listing, full_names, visible


def from_fields(listing: Listing) -> FieldsListing:
    offsets = pa.py_buffer(listing.field_offsets)
    fields = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(listing), [None, offsets, listing.fields]
    )
    return FieldsListing(listing.namespace, listing.mode, fields, listing.topics_hash)


@given(st.lists(full_names(), max_size=20))
def test_all_columns_are_made_of_the_fields(names: list[str]) -> None:
    listing = from_fields(Listing.from_names(NAMESPACE, Mode.ALL, names))
    before = listing.column_bytes
    assert_listing(listing, visible(names))
    assert listing.column_bytes >= before


def test_names_of_any_length_are_found_in_their_fields() -> None:
    lengths = [1, 100, 127 - 17, 128 - 17, 129 - 17, 16_383 - 17, 16_384 - 17, 30_000]
    names = [f"persistent://t/n/{'x' * length}" for length in sorted(lengths)]
    listing = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    assert {len(name) for name in names} >= {127, 128, 16_383, 16_384}
    assert names_of_fields(listing.fields, listing.field_offsets).to_pylist() == visible(names)
    assert_listing(from_fields(listing), visible(names))
