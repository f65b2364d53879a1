"""Answers to listings decode as with protobuf, and damaged ones are refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.client.client_errors import UnexpectedAnswer
from broker_core.client.pulsar.topics_answer import TopicsAnswer, peek_request_id
from broker_core.listing.fields.search_fields import search_fields
from broker_core.listing.fields.topic_field import topic_field
from broker_core.wire.pulsar.commands import decode
from broker_core.wire.pulsar.frames import HEADER_SIZE, FrameError
from tests.support.topics_answers import get_topics_response

names = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40).map(
        lambda local: f"persistent://t/n/{local}"
    )
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    max_size=100,
)


def answer(topics: list[str], *, topics_hash: str | None = "0123abcd", filtered: bool = False) -> bytes:
    return get_topics_response(7, topics, topics_hash=topics_hash, filtered=filtered)[HEADER_SIZE:]


def command_of(body: bytes, start: bytes = b"\x08\x21") -> bytes:
    size = len(body)
    varint = bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14))
    return start + b"\x8a\x02" + varint + body


@given(st.integers(0, 2**64 - 1), names, st.none() | st.text("abc123", max_size=10), st.booleans())
def test_what_protobuf_reads(
    request_id: int, topics: list[str], topics_hash: str | None, filtered: bool
) -> None:
    command = get_topics_response(request_id, topics, topics_hash=topics_hash, filtered=filtered)[
        HEADER_SIZE:
    ]
    body = decode(command).getTopicsOfNamespaceResponse
    read = TopicsAnswer(command)
    assert read.topics == list(body.topics) == topics
    assert len(read) == len(topics)
    assert (read.request_id, read.filtered, read.changed) == (request_id, filtered, True)
    assert read.topics_hash == topics_hash
    assert peek_request_id(command) == request_id
    assert read.size == len(command)


def large(count: int, seed: int, lengths: list[int]) -> list[str]:
    chosen = random.Random(seed)
    starts = ["persistent://t/n/", "non-persistent://t/n/"]
    return [
        (chosen.choice(starts) + f"{index}-").ljust(chosen.choice(lengths), chosen.choice("xäπ😀"))
        for index in range(count)
    ]


@pytest.mark.parametrize(
    ("lengths", "kind"),
    [
        ([40], bytes),
        ([18, 19, 30], memoryview),
        ([40, 140, 200], memoryview),
        ([100, 17_000, 20_000], memoryview),
        ([60, 2_320], memoryview),
    ],
    ids=str,
)
def test_a_large_answer_is_read_at_once(lengths: list[int], kind: type) -> None:
    topics = large(70_000 // lengths[0] + 1000, 1, lengths)
    command = answer(topics)
    read = TopicsAnswer(kind(command))
    assert search_fields(memoryview(command), command.index(b"\x08\x07\x12") + 2, len(command))
    assert read.topics == topics
    assert (read.topics_hash, read.request_id) == ("0123abcd", 7)


def test_a_large_answer_without_anything_behind_its_topics() -> None:
    topics = large(3000, 2, [30])
    body = b"\x08\x07" + b"".join(map(topic_field, topics))
    assert TopicsAnswer(command_of(body)).topics == topics


@pytest.mark.parametrize(
    "odd",
    [
        "persistent://t/n/a\x12\x10pb",
        "\x12" * 30,
        "",
        "x",
        "\x12pppppppppppppppppppp",
        "persistent://a/b/c",
    ],
)
def test_records_that_cannot_be_told_apart_at_sight(odd: str) -> None:
    topics = large(3000, 3, [18, 40])
    topics[1000] = topics[-1] = odd
    assert TopicsAnswer(answer(topics)).topics == topics


@pytest.mark.parametrize("length", [4, 11, 12, 13])
def test_the_column_of_short_names(length: int) -> None:
    """Arrow keeps texts of at most twelve bytes in its views themselves."""
    topics = [f"{number:0{length}}" for number in range(100)]
    assert TopicsAnswer(answer(topics)).column().to_pylist() == topics


def test_topics_between_other_fields() -> None:
    first, second = large(3000, 4, [30]), large(2000, 5, [50])
    body = (
        b"".join(map(topic_field, first))
        + b"\x08\x07\x18\x01"
        + b"".join(map(topic_field, second))
        + b"\x22\x02ab\x32\x03new\x28\x01"
    )
    read = TopicsAnswer(command_of(body))
    assert read.topics == first + second
    assert (read.request_id, read.filtered, read.topics_hash) == (7, True, "ab")
    assert peek_request_id(command_of(body)) is None


def test_the_hash_that_is_unchanged() -> None:
    command = get_topics_response(7, [], topics_hash="00", filtered=True, changed=False)[HEADER_SIZE:]
    read = TopicsAnswer(command)
    assert (read.changed, read.filtered, read.topics, read.topics_hash) == (False, True, [], "00")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "lacks its request id"),
        (b"\x08\x07\x08\x07", "field 1 too many"),
        (b"\x08\x07\x18\x01\x18\x01", "field 3 too many"),
        (b"\x08\x07\x22\x01a\x22\x01a", "field 4 too many"),
        (b"\x08\x07\x28\x01\x28\x01", "field 5 too many"),
        (b"\x08\x07\x18\x02", "flag of the value 2"),
        (b"\x08\x07\x1a\x01\x01", "field 3 too many or malformed"),
        (b"\x08\x07\x10\x01", "field 2 too many or malformed"),
        (b"\x08\x07\x92\x00\x01a", "field 2 too many or malformed"),
        (b"\x08\x07\x28\x00\x12\x01a", "nothing changed, and yet names topics"),
        (b"\x08\x07\x12\x05abc", "truncated"),
        (b"\x08\x07\x12", "truncated"),
        (b"\x08\x07\x12\x80", "truncated"),
        (b"\x08\x07\x22\x05abc", "truncated"),
        (b"\x08\x07\x22\x01\xff", "hash that is no UTF-8"),
        (b"\x08\x07\x22\x81\x08" + b"x" * 1025, "hash of 1025 bytes"),
        (b"\x08\x07\x33", "wire type 3"),
        (b"\x08\x07\x00\x00", "impossible key 0"),
        (b"\x08\x07\x80\x80\x80\x80\x10\x00", "impossible key 4294967296"),
        (b"\x08" + b"\xff" * 10 + b"\x01", "more than 64 bits"),
        (b"\x08\x07" + b"\x12\x01a\x30\x01" * 65, "scattered"),
    ],
)
def test_what_is_no_answer(body: bytes, reason: str) -> None:
    with pytest.raises(UnexpectedAnswer, match=reason):
        TopicsAnswer(command_of(body))


@pytest.mark.parametrize("start", [b"\x08\x20", b"\x08\x21\x08\x21", b"", command_of(b"\x08\x07")])
def test_what_is_no_command_with_one_answer(start: bytes) -> None:
    with pytest.raises(UnexpectedAnswer, match="not one answer"):
        TopicsAnswer(command_of(b"\x08\x07", start))


@pytest.mark.parametrize("count", [1, 3000])
def test_names_that_are_no_utf_8(count: int) -> None:
    body = b"\x08\x07" + b"".join(map(topic_field, large(count, 6, [40])))
    damaged = body[:30] + b"\xff" + body[31:]
    with pytest.raises(UnexpectedAnswer, match="no UTF-8"):
        _ = TopicsAnswer(command_of(damaged)).topics


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes(raw: bytes, framed: bool) -> None:
    try:
        _ = TopicsAnswer(command_of(raw) if framed else raw).topics
    except UnexpectedAnswer:
        pass
    peek_request_id(raw)


@given(st.data())
def test_damage_is_seen_or_read_as_protobuf_reads_it(data: st.DataObject) -> None:
    raw = bytearray(answer(large(2200, 7, [25, 60])))
    for position in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=3)):
        raw[position] = data.draw(st.integers(0, 255))
    command = bytes(raw[: data.draw(st.sampled_from([len(raw), len(raw) - 1, len(raw) // 2]))])
    try:
        read = TopicsAnswer(command)
        topics = read.topics
    except UnexpectedAnswer:
        return
    try:
        expected = decode(command).getTopicsOfNamespaceResponse
    except FrameError:
        pytest.fail("protobuf would not have read this")
    assert topics == list(expected.topics)
    assert (read.request_id, read.filtered, read.changed) == (
        expected.request_id,
        expected.filtered,
        expected.changed,
    )
