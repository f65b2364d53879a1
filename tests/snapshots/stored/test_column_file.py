"""Files of columns: what is written is read, and nothing else is."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.listing_hash import extend_crc
from broker_core.snapshots.stored.column_file import ColumnFile, FileReference, read_columns
from broker_core.snapshots.stored.file_errors import RefusedFile

COLUMNS: dict[str, Any] = {
    "fields": pa.py_buffer(b"some bytes"),
    "offsets": np.array([0, 4, 10], np.int64),
    "empty": b"",
    "codes": np.array([1, -1], np.int32),
}


def made(columns: dict[str, Any] = COLUMNS, rows: int = 2) -> tuple[bytes, FileReference]:
    file = ColumnFile(columns, rows, {"mode": "ALL", "crc": 7})
    return b"".join(bytes(piece) for piece in file.pieces), file.reference


def test_columns_and_facts_come_back_aligned_and_read_only() -> None:
    content, reference = made()
    columns, facts = read_columns(content, reference)
    assert facts == {"mode": "ALL", "crc": 7}
    assert {name: bytes(buffer) for name, buffer in columns.items()} == {
        name: bytes(memoryview(buffer).cast("B")) if len(buffer) else b"" for name, buffer in COLUMNS.items()
    }
    start = pa.py_buffer(content).address
    assert all(not buffer.is_mutable for buffer in columns.values())
    assert {(columns[name].address - start) % 64 for name in ("fields", "offsets", "codes")} == {0}


def test_equal_columns_have_one_name_and_others_another() -> None:
    assert made()[1] == made()[1]
    assert made({**COLUMNS, "empty": b"x"})[1].digest != made()[1].digest
    assert made(rows=3)[1].digest != made()[1].digest


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.binary(max_size=300), max_size=6))
def test_any_columns_come_back(columns: dict[str, bytes]) -> None:
    read, _ = read_columns(*made(columns))
    assert {name: bytes(buffer) for name, buffer in read.items()} == columns


@given(st.data())
def test_any_changed_byte_is_found(data: st.DataObject) -> None:
    content, reference = made()
    at = data.draw(st.integers(0, len(content) - 1))
    other = bytearray(content)
    other[at] ^= data.draw(st.integers(1, 255))
    try:
        columns, _ = read_columns(bytes(other), reference)
    except RefusedFile:
        return
    # It is one of the zeros between columns.
    assert {name: bytes(each) for name, each in columns.items()} == {
        name: bytes(each) for name, each in read_columns(content, reference)[0].items()
    }


@given(st.integers(0, 400))
def test_no_part_of_a_file_is_read(length: int) -> None:
    content, reference = made()
    with pytest.raises(RefusedFile):
        read_columns(content[: min(length, len(content) - 1)], reference)


def with_header(change: dict[str, Any], **of_first: Any) -> tuple[bytes, FileReference]:
    """A file whose checksums are right, and whose header says something else."""
    content, reference = made()
    (length,) = struct.unpack_from("<I", content, 8)
    header = json.loads(content[16 : 16 + length]) | change
    if of_first:
        next(each for each in header["columns"] if each["size"]).update(of_first)
    text = json.dumps(header).encode().ljust(length + 200)
    crc = extend_crc(0, memoryview(text))
    front = struct.pack("<8sII", b"BRKCOLS1", len(text), crc) + text
    front += bytes(-len(front) % 64)
    body = content[16 + length + -(16 + length) % 64 :]
    return front + body, reference.model_copy(update={"size": len(front + body), "crc": crc})


@pytest.mark.parametrize(
    ("change", "of_first", "said"),
    [
        ({}, {"at": 64}, "checksum|overlaps"),
        ({}, {"at": 3}, "not within"),
        ({}, {"at": -64}, "header is wrong"),
        ({}, {"at": 2**40}, "not within"),
        ({}, {"at": 10**400}, "header is wrong"),
        ({}, {"size": 2**47}, "not within"),
        ({}, {"size": 2**63}, "header is wrong"),
        ({}, {"size": "10"}, "header is wrong"),
        ({}, {"name": "codes"}, "twice"),
        ({"rows": 3}, {}, "3 rows"),
        ({"rows": True}, {}, "header is wrong"),
        ({"more": 1}, {}, "header is wrong"),
        ({"columns": None}, {}, "header is wrong"),
        ({"facts": {"deep": [[[]]]}}, {}, "header is wrong"),
    ],
)
def test_a_header_that_lies_is_refused(change: dict[str, Any], of_first: dict[str, Any], said: str) -> None:
    assert read_columns(*with_header({}))[1] == {"mode": "ALL", "crc": 7}
    with pytest.raises(RefusedFile, match=said):
        read_columns(*with_header(change, **of_first))


def test_a_file_of_another_kind_is_refused() -> None:
    content, reference = made()
    with pytest.raises(RefusedFile, match="another kind"):
        read_columns(b"BRKCOLS2" + content[8:], reference)
    with pytest.raises(RefusedFile, match="bytes in place"):
        read_columns(b"", reference)
    with pytest.raises(RefusedFile, match="not within"):
        read_columns(content[:8] + b"\xff\xff\xff\xff" + content[12:], reference)


def test_a_chunk_that_no_file_may_hold_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.snapshots.stored.column_file.LARGEST_FILE", 100)
    with pytest.raises(RefusedFile, match="larger than"):
        made()
