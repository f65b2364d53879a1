from __future__ import annotations

import random

import pytest

from broker_core.wire.kafka import (
    KAFKA_APIS,
    LIST_GROUPS,
    OFFSET_FETCH,
    Api,
    MalformedMessage,
    RawRows,
    read_raw_response,
    read_response,
    response_frame,
)
from broker_core.wire.kafka.fields import Array, Struct
from tests.support.kafka_random_values import random_value

_ARRAYS = [
    (api, version, field.name)
    for api in KAFKA_APIS
    for version in range(api.versions.first, api.versions.last + 1)
    for field in api.response.fields
    if isinstance(field.kind, Array)
    and isinstance(field.kind.of, Struct)
    and field.tag is None
    and api.response.has(field.name, version)
]


def test_rows_of_each_answer_are_found_without_decoding_them() -> None:
    chance = random.Random(5)
    assert len(_ARRAYS) > 150
    for api, version, name in _ARRAYS:
        value = random_value(api.response, version, chance)
        message = b"".join(response_frame(api, version, 7, value))[4:]
        number, found = read_raw_response(((name, ()),), api, version, message)
        wanted = read_response(api, version, message)[1]
        assert number == 7
        assert {**found, name: list(found[name])} == wanted, (api.name, version, name)
        assert b"".join(response_frame(api, version, 7, found))[4:] == message


@pytest.mark.parametrize(("api", "version"), [(LIST_GROUPS, 5), (OFFSET_FETCH, 8), (OFFSET_FETCH, 5)])
def test_bytes_that_are_no_rows_are_an_error(api: Api, version: int) -> None:
    chance = random.Random(api.key + version)
    name = "topics" if (api, version) == (OFFSET_FETCH, 5) else "groups"
    path = ((name, ()),)
    for _ in range(300):
        message = bytearray(
            b"".join(response_frame(api, version, 7, random_value(api.response, version, chance)))[4:]
        )
        for _ in range(chance.randint(1, 3)):
            message[chance.randrange(4, len(message))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        broken = bytes(message[: chance.randint(8, len(message))])
        try:
            wanted = read_response(api, version, broken)[1]
        except MalformedMessage:
            wanted = None
        try:
            rows = read_raw_response(path, api, version, broken)[1][name]
        except MalformedMessage:
            continue
        # A null that no field may be is found by those who decode it.
        if wanted is not None:
            assert (rows is None) is (wanted[name] is None)
            assert rows is None or (isinstance(rows, RawRows) and list(rows) == wanted[name])


def test_a_number_of_rows_that_no_message_has_is_refused_at_once() -> None:
    head = b"\0\0\0\7" + b"\0" + b"\0\0\0\0" + b"\0\0"
    for count in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\x03"):
        with pytest.raises(MalformedMessage):
            read_raw_response((("groups", ()),), LIST_GROUPS, 5, head + count + b"\2a\2b\2c\2d\0" * 3)
