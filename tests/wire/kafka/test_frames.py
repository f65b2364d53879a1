from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.wire.kafka import (
    API_VERSIONS,
    LIST_TOPICS,
    METADATA,
    Encoded,
    FrameSplitter,
    MalformedMessage,
    Reader,
    read_header,
    read_response,
    request_frame,
    response_frame,
)


@given(st.lists(st.binary(min_size=8, max_size=40)), st.data())
def test_frames_come_out_however_the_stream_is_cut(messages: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(len(message).to_bytes(4, "big") + message for message in messages)
    splitter = FrameSplitter(40)
    found: list[bytes] = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == messages
    assert splitter.buffered == 0


def test_a_tls_handshake_is_named() -> None:
    splitter = FrameSplitter(1000)
    with pytest.raises(MalformedMessage, match="TLS handshake"):
        splitter.feed((8).to_bytes(4, "big") + bytes(8) + b"\x16\x03\x01\x02\x00\x01\x00")
    with pytest.raises(MalformedMessage, match="from 8 to 1000"):
        splitter.feed(b"\x17\x03\x01\x02")


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x07"])
def test_a_length_that_no_request_has_is_malformed(length: bytes) -> None:
    splitter = FrameSplitter(1000)
    with pytest.raises(MalformedMessage):
        splitter.feed(length)
    assert splitter.buffered == 0


def test_a_request_begins_with_its_length_and_header() -> None:
    frame = request_frame(METADATA, 12, 7, None, {"topics": None})
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    reader = Reader(frame, 4)
    assert read_header(reader) == (3, 12, 7, "")
    reader.skip_tags()
    assert METADATA.read_request(reader, 12)["topics"] is None


def test_the_header_of_an_answer_has_tags_in_flexible_versions() -> None:
    assert b"".join(response_frame(METADATA, 9, 1, {}))[4:9] == b"\x00\x00\x00\x01\x00"
    assert b"".join(response_frame(API_VERSIONS, 3, 1, {}))[4:10] == b"\x00\x00\x00\x01\x00\x00"


def test_an_answer_is_read_as_written() -> None:
    frame = b"".join(response_frame(METADATA, 13, 5, {"cluster_id": "c"}))
    number, value = read_response(METADATA, 13, frame[4:])
    assert (number, value["cluster_id"], value["topics"]) == (5, "c", [])


def test_an_answer_of_too_many_elements_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = b"".join(response_frame(LIST_TOPICS, 0, 1, {"topics": [{"name": name} for name in "abc"]}))
    monkeypatch.setattr("broker_core.wire.kafka.frames.MOST_ANSWERED", 2)
    with pytest.raises(MalformedMessage, match="too many elements"):
        read_response(LIST_TOPICS, 0, frame[4:])


def test_an_answer_that_no_length_is_for_is_none() -> None:
    """Its pieces are one and the same: it has no such memory."""
    names = Encoded(1, [bytes(16 * 1024)] * 2**17)
    with pytest.raises(OverflowError, match="is no frame"):
        response_frame(LIST_TOPICS, 0, 1, {"topics": names})
