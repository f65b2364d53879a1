"""The codec of encoded names: writes as protobuf does, reads it back, and refuses everything else."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from broker_core.listing.fields.fields_codec import (
    binary_column,
    decode_fields,
    encode_fields,
    fields_fault,
    gathered,
    joined_fields,
    name_start,
)
from broker_core.listing.fields.topic_field import topic_field
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import CommandGetTopicsOfNamespaceResponse

SIZES = [1, 2, 126, 127, 128, 129, 130, 131, 16_382, 16_383, 16_384, 16_385, 16_386, 16_387, 32_767]


def column(names: list[str]) -> pa.LargeBinaryArray:
    return encode_fields(pa.array([f",{name}" for name in names], pa.large_string()))


@pytest.mark.parametrize("sizes", [SIZES, [5, 6], [200, 300], [20_000, 30_000], []], ids=str)
def test_fields_are_what_protobuf_writes(sizes: list[int]) -> None:
    names = ["x" * size for size in sizes]
    fields = column(names)
    wanted = CommandGetTopicsOfNamespaceResponse(topics=names).SerializePartialToString()
    assert b"".join(fields.to_pylist()) == wanted == b"".join(map(topic_field, names))
    assert decode_fields(fields).to_pylist() == names
    assert decode_fields(fields, comma=True).to_pylist() == [f",{name}".encode() for name in names]
    assert fields_fault(fields) is None
    assert [field[name_start(len(field)) :].decode() for field in fields.to_pylist()] == names


def test_a_few_rows_are_gathered_one_by_one_as_arrow_does() -> None:
    fields = column([f"name-{'x' * number}" for number in range(20)])
    data, offsets = fields.buffers()[2], np.frombuffer(fields.buffers()[1], np.int64)[:21]
    rows = np.array([0, 3, 4, 19])
    body, sizes = joined_fields(data, offsets, rows)
    same, edges = gathered(data, offsets, rows)
    assert body == same.to_pybytes()[: int(edges[-1])]
    assert sizes == np.diff(edges).tolist()
    assert joined_fields(data, offsets, rows[:0]) == (b"", [])


def test_a_slice_is_decoded_alone() -> None:
    fields = column(["a", "b" * 200, "c", "d" * 17_000])
    assert decode_fields(fields[1:3]).to_pylist() == ["b" * 200, "c"]
    assert fields_fault(fields[1:]) is None


@pytest.mark.parametrize(
    "field",
    [
        b"",
        b"\x12",
        b"\x12\x00",
        b"\x0a\x01a",
        b"\x12\x02a",
        b"\x12\x01ab",
        b"\x12\xff\x00" + b"a" * 127,
        b"\x12\x81a",
    ],
    ids=repr,
)
def test_other_bytes_are_no_field(field: bytes) -> None:
    assert fields_fault(pa.array([b"\x12\x01a", field], pa.large_binary())) is not None


def test_one_changed_byte_is_found() -> None:
    pick = random.Random(1)
    names = ["n" * pick.choice(SIZES[:11]) for _ in range(40)]
    fields = column(names)
    data = b"".join(fields.to_pylist())
    offsets = np.concatenate(([0], np.cumsum([len(field) for field in fields.to_pylist()])))
    for _ in range(300):
        row = pick.randrange(len(names))
        at = int(offsets[row]) + pick.randrange(name_start(int(offsets[row + 1] - offsets[row])))
        changed = bytearray(data)
        changed[at] ^= 1 << pick.randrange(8)
        assert fields_fault(binary_column(pa.py_buffer(bytes(changed)), offsets)) is not None
