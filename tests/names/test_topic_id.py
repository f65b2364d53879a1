from __future__ import annotations

import base64
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidName
from broker_core.names.topic_id import (
    new_topic_id,
    new_topic_ids,
    parse_topic_id,
    topic_id_text,
    topic_ids_of_a_request,
)

COUNT = 20_000  # one id in 64 would begin with "-" if nobody looked


def test_ids_are_random_uuids_of_version_4_that_never_begin_with_a_dash() -> None:
    raw = new_topic_ids(COUNT)
    ids = [uuid.UUID(bytes=raw[start : start + 16]) for start in range(0, len(raw), 16)]

    assert len(set(ids)) == COUNT
    assert ids == sorted(ids)
    assert {topic_id.version for topic_id in ids} == {4}
    assert {topic_id.variant for topic_id in ids} == {uuid.RFC_4122}
    texts = [topic_id_text(topic_id) for topic_id in ids]
    assert {len(text) for text in texts} == {22}
    first = {text[0] for text in texts}
    assert "-" not in first
    assert len(first) == 63, "every other first character occurs"


def test_no_ids_are_no_bytes() -> None:
    assert new_topic_ids(0) == b""


def test_both_forms_are_read() -> None:
    topic_id = new_topic_id()
    for text in (topic_id_text(topic_id), topic_id_text(topic_id) + "==", str(topic_id), topic_id.hex):
        assert parse_topic_id(text) == topic_id


def test_the_ids_of_kafka_are_read_and_written_as_kafka_does() -> None:
    # Uuid.METADATA_TOPIC_ID and Uuid.ZERO_UUID; and one that begins with "-", which Kafka never makes but reads.
    assert topic_id_text(uuid.UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert parse_topic_id("AAAAAAAAAAAAAAAAAAAAAA") == uuid.UUID(int=0)
    assert topic_id_text(parse_topic_id("-AAAAAAAAAAAAAAAAAAAAA")) == "-AAAAAAAAAAAAAAAAAAAAA"


@given(st.binary(min_size=16, max_size=16))
def test_both_alphabets_of_base64_are_read(data: bytes) -> None:
    for text in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        assert parse_topic_id(text.decode()) == parse_topic_id(text[:22].decode()) == uuid.UUID(bytes=data)


@pytest.mark.parametrize("text", ["", "abc", "A" * 23, "é" * 22, "A" * 30, "{}", "AAAAAAAAAAAAAAAAAAAA+."])
def test_anything_else_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(InvalidName) as raised:
        parse_topic_id(text)
    assert repr(text) in str(raised.value)


def test_ids_of_a_request_are_in_order_and_stand_together() -> None:
    requests = [topic_ids_of_a_request(300) for _ in range(200)]
    for made in requests:
        assert made == sorted(set(made))
        assert {each.version for each in made} == {4}
        assert len({each.bytes[0] for each in made}) == 1
        assert len({each.bytes[1] for each in made}) > 100
        assert not any(topic_id_text(each).startswith("-") for each in made)
    assert len(set().union(*requests)) == 200 * 300
    assert len({made[0].bytes[0] for made in requests}) > 50
    assert topic_ids_of_a_request(0) == []
