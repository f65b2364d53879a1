from __future__ import annotations

import pytest

from broker_core.wire.kafka import (
    API_VERSIONS,
    LIST_TOPICS,
    METADATA,
    Encoded,
    MalformedMessage,
    Reader,
    read_header,
    read_response,
    request_frame,
    response_frame,
)


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
    monkeypatch.setattr("broker_core.wire.kafka.api.MOST_ANSWERED", 2)
    with pytest.raises(MalformedMessage, match="too many elements"):
        read_response(LIST_TOPICS, 0, frame[4:])


def test_an_answer_that_no_length_is_for_is_none() -> None:
    """Its pieces are one and the same: it has no such memory."""
    names = Encoded(1, [bytes(16 * 1024)] * 2**17)
    with pytest.raises(OverflowError, match="is no frame"):
        response_frame(LIST_TOPICS, 0, 1, {"topics": names})
