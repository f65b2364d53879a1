"""Checks of foreign encoded names: valid ones pass, and any single wrong byte is found."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames, Listing, Mode, NamespaceName
from broker_core.errors import InvalidListing
from broker_core.listing.fields.fields_codec import check_fields, checked_column
from broker_core.names.name_columns import column_data
from tests.support.examples import examples
from tests.support.one_test import in_one_test

NAMESPACE = NamespaceName.parse("t/n")


def fields_of(count: int, seed: int = 0) -> pa.LargeBinaryArray:
    pick = random.Random(seed)
    names = [
        f"{pick.choice(['persistent', 'non-persistent'])}://t/n/n{number:05}{'é😀'[: number % 3]}"
        for number in range(count)
    ]
    return Listing.from_names(NAMESPACE, Mode.ALL, names).all().column()


def test_names_of_both_domains_pass() -> None:
    fields = fields_of(300)
    check_fields(fields, NAMESPACE, Mode.ALL)
    check_fields(fields[:0], NAMESPACE, Mode.ALL)
    for mode in (Mode.PERSISTENT, Mode.NON_PERSISTENT):
        with pytest.raises(InvalidListing):
            check_fields(fields, NAMESPACE, mode)
    with pytest.raises(InvalidListing):
        check_fields(fields, NamespaceName.parse("t/m"), Mode.ALL)


@in_one_test("seed", range(examples(100)))
def test_what_passes_is_what_a_listing_would_encode(seed: int) -> None:
    """One byte is changed: it is found, unless the names are still right ones in their order."""
    pick = random.Random(seed)
    data, offsets = column_data(fields_of(20, seed % 7))
    changed = bytearray(memoryview(data)[int(offsets[0]) : int(offsets[-1])])
    changed[pick.randrange(len(changed))] = pick.randrange(256)
    column = checked_column(pa.py_buffer(bytes(changed)), offsets - offsets[0])
    try:
        check_fields(column, NAMESPACE, Mode.ALL)
    except InvalidListing:
        return
    names = Listing.from_encoded(NAMESPACE, Mode.ALL, column).names
    assert Listing.from_names(NAMESPACE, Mode.ALL, names).all().column().equals(column)


def test_rows_are_gathered_without_following_other_offsets() -> None:
    fields = EncodedNames.of("t/n", "persistent", [f"a{number}" for number in range(9)]).fields
    data, offsets = column_data(fields)
    rows = np.array([1, 4, 5])
    broken = offsets.copy()
    broken[8] = 2**40
    assert checked_column(data, broken, rows).equals(fields.take(pa.array(rows)))
    for some in (None, np.array([7]), np.array([8])):
        with pytest.raises(InvalidListing, match="offsets"):
            checked_column(data, broken, some)
    assert len(checked_column(data, offsets, rows[:0])) == 0
