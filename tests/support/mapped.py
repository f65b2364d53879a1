"""Memory of an unnamed file, mapped read-only, and listings of such files."""

from __future__ import annotations

import mmap
import tempfile

import pyarrow as pa

from broker_core.listing.listing import Listing
from broker_core.names.name_columns import column_data

__all__ = ["mapped", "mapped_listing"]


def mapped(data: bytes) -> pa.Buffer:
    """These bytes, in a file of their own."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return pa.py_buffer(mmap.mmap(file.fileno(), len(data), access=mmap.ACCESS_READ))


def mapped_listing(listing: Listing) -> Listing:
    """A listing of the topics, encoded in a file."""
    data, offsets = column_data(listing.all().column())
    fields = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(listing), [None, mapped(offsets.tobytes()), mapped(data.to_pybytes())]
    )
    return Listing.from_encoded(listing.namespace, listing.mode, fields, mapped=True)
