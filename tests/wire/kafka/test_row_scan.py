from __future__ import annotations

import pytest

from broker_core.wire.kafka import OFFSET_FETCH, response_frame
from broker_core.wire.kafka.fields import Array
from broker_core.wire.kafka.row_scan import RawPath, compiled_scan, own_places

PATH: RawPath = (
    ("groups", ("group_id", "error_code")),
    ("topics", ("name",)),
    ("partitions", ("partition_index", "committed_offset")),
)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_places_are_those_of_the_rows_and_of_their_fields(count: int) -> None:
    partitions = [{"partition_index": each, "committed_offset": 100 + each} for each in range(count)]
    rows = [{"group_id": name, "topics": [{"name": "t", "partitions": partitions}]} for name in ("a", "bcd")]
    message = b"".join(response_frame(OFFSET_FETCH, 8, 7, {"groups": rows}))[4:]
    own = own_places(OFFSET_FETCH.response, 8, PATH)
    # What a row begins with has its place.
    assert own == [["error_code"], [], ["committed_offset"]]
    groups = OFFSET_FETCH.response.kind_of("groups")
    assert isinstance(groups, Array)
    scan = compiled_scan(groups.of, 8, PATH, own, compact=True)
    first = message.index(b"\2a")
    end, starts, inner, counts, tails, errors, names, _, numbers, _, parts, offsets = scan(message, first, 2)
    assert end == len(message) - 1  # behind it are the tags of the answer
    assert [message[at : at + 2] for at in starts] == [b"\2a", b"\4b"]
    assert [message[at] for at in inner] == [2, 2]
    assert list(counts) == [1, 1]
    assert [message[at : at + 2] for at in names] == [b"\2t"] * 2
    assert list(tails) == list(errors)
    assert list(numbers) == [count] * 2
    assert [int.from_bytes(message[at : at + 4], "big") for at in parts] == [*range(count)] * 2
    assert [int.from_bytes(message[at : at + 8], "big") for at in offsets] == [*range(100, 100 + count)] * 2
