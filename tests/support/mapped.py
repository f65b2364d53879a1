"""Memory of an unnamed file, mapped read-only."""

from __future__ import annotations

import mmap
import tempfile

import pyarrow as pa

__all__ = ["mapped"]


def mapped(data: bytes) -> pa.Buffer:
    """These bytes, in a file of their own."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return pa.py_buffer(mmap.mmap(file.fileno(), len(data), access=mmap.ACCESS_READ))
