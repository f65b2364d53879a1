"""Messages of any API and version that are no messages: refused, whatever they announce."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.wire.kafka import APIS, Api, MalformedMessage, Reader
from tests.support.kafka_mutations import damaged, read_or_refused
from tests.support.kafka_oracles import DIRECTIONS
from tests.support.kafka_values import EXAMPLES, messages, versions_of, written
from tests.support.one_test import in_one_test

EACH = pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)


@EACH
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_damaged_message_is_read_or_refused(api: Api, data: st.DataObject) -> None:
    _, version = data.draw(st.sampled_from(versions_of(api)))
    chance = random.Random(data.draw(st.integers(0, 2**32)))
    for direction, value in zip(DIRECTIONS, data.draw(messages(api, version)), strict=True):
        for bad in damaged(written(api, direction, version, value), chance, 50):
            read_or_refused(api, direction, version, bad)


@EACH
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_message_needs_its_last_byte(api: Api, data: st.DataObject) -> None:
    _, version = data.draw(st.sampled_from(versions_of(api)))
    whole = written(api, "request", version, data.draw(messages(api, version))[0])
    for end in range(max(0, len(whole) - 50), len(whole)):
        with pytest.raises(MalformedMessage):
            api.read_request(Reader(whole[:end]), version)
    assert api.read_request(Reader(whole + b"more"), version) == api.read_request(Reader(whole), version)


@in_one_test("api, version", versions_of(*APIS.values()))
def test_lengths_of_two_gigabytes_are_refused_before_they_cost_memory(api: Api, version: int) -> None:
    plain, compact = b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07"
    length = compact if api.is_flexible(version) else plain
    read_or_refused(api, "request", version, bytes(1000))  # makes the codec
    tracemalloc.start()
    try:
        for before in range(0, 40, 3):
            read_or_refused(api, "request", version, bytes(before) + length * 4)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@in_one_test(
    "api, version",
    [(api, version) for api, version in versions_of(*APIS.values()) if api.is_flexible(version)],
)
def test_unknown_tags_of_a_request_are_skipped(api: Api, version: int) -> None:
    plain = written(api, "request", version, {})
    assert plain.endswith(b"\0")  # no tags
    tagged = plain[:-1] + b"\x02" + b"\x63\x03abc" + b"\x64\x00"
    assert api.read_request(Reader(tagged), version) == api.read_request(Reader(plain), version)
