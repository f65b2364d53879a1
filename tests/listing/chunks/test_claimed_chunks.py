"""Chunks of names that were encoded elsewhere: cut by size and domain, copied unless they are mapped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from broker_core.errors import InvalidListing
from broker_core.listing.chunks.claimed_chunks import claimed_chunks
from broker_core.listing.listing import Listing
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode
from tests.support.mapped import mapped
from tests.support.topics import NAMESPACE

#: Bytes of a chunk of the second round.
TINY_CHUNK = 1000


def fields_of(count: int) -> pa.LargeBinaryArray:
    names = [
        f"{domain}://t/n/n{number:04}" for number in range(count) for domain in (PERSISTENT, NON_PERSISTENT)
    ]
    column: pa.LargeBinaryArray = Listing.from_names(NAMESPACE, Mode.ALL, names).all().column()
    return column


def in_a_file(column: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    _, offsets, data = column.buffers()
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(column), [None, mapped(offsets.to_pybytes()), mapped(data.to_pybytes())]
    )


@pytest.mark.parametrize("is_mapped", [False, True])
def test_they_have_all_names_in_order_and_one_domain_each(is_mapped: bool) -> None:
    fields = fields_of(300)
    chunks = claimed_chunks(
        NAMESPACE, Mode.ALL, [in_a_file(fields) if is_mapped else fields], mapped=is_mapped
    )
    assert pa.concat_arrays([chunk.column(0, chunk.size) for chunk in chunks]).equals(fields)
    domains = [chunk.domain for chunk in chunks]
    assert domains == sorted(domains)
    assert set(domains) == {PERSISTENT, NON_PERSISTENT}
    for chunk in chunks:
        assert chunk.is_mapped is chunk.offsets_mapped is is_mapped
        assert all(name.startswith(f"{chunk.domain}://") for name in chunk.names(0, chunk.size).to_pylist())


def test_what_is_not_in_a_file_is_copied() -> None:
    fields = fields_of(20)
    (chunk, *_) = claimed_chunks(NAMESPACE, Mode.ALL, [fields], mapped=True)
    assert not chunk.is_mapped
    assert chunk.fields.address != fields.buffers()[2].address
    assert not chunk.is_believed


def test_several_columns_and_none() -> None:
    column = fields_of(15)
    listing = Listing.from_encoded("t/n", Mode.ALL, [column[:10], column[10:]])
    assert listing.all().column().equals(column)
    assert len(Listing.from_encoded("t/n", Mode.ALL, [])) == 0
    for bad in (pa.array(["a"]), pa.array([None], pa.large_binary())):
        with pytest.raises(InvalidListing):
            Listing.from_encoded("t/n", Mode.ALL, bad)


def test_offsets_that_lead_elsewhere() -> None:
    data = pa.py_buffer(b"".join(fields_of(250).to_pylist()))
    for wrong in (-1, len(data) + 1, 2**62, -(2**63)):
        offsets = np.array([0, *[wrong] * 50, len(data)], np.int64)
        column = pa.LargeBinaryArray.from_buffers(pa.large_binary(), 51, [None, pa.py_buffer(offsets), data])
        for mode in Mode:
            with pytest.raises(InvalidListing):
                Listing.from_encoded(NAMESPACE, mode, column).all().check()
