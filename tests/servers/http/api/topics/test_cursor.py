"""Cursors: every position there and back, and nothing else."""

from __future__ import annotations

import base64
import re

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.listing.pages.page import Position
from broker_core.names import NamespaceName
from broker_core.names.topic_name import MAX_NAME_BYTES
from broker_core.servers.http.api.topics.cursor import MAX_CURSOR, cursor_of, read_cursor
from tests.support.topics import NAMESPACE, full_names

CURSOR = cursor_of(Position("persistent://t/n/a", 3))


@given(full_names().map(Position.of))
def test_positions_there_and_back(position: Position) -> None:
    cursor = cursor_of(position)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", cursor)
    assert read_cursor(cursor, NAMESPACE) == position


@given(full_names().map(Position.of), st.data())
def test_a_shortened_or_changed_cursor_is_none(position: Position, data: st.DataObject) -> None:
    cursor = cursor_of(position)
    size = data.draw(st.integers(0, len(cursor) - 1))
    with pytest.raises(ValueError, match=r"^is no cursor"):
        read_cursor(cursor[:size], NAMESPACE)
    other = "A" if cursor[size] != "A" else "f"  # the bits that are padding may be any in other letters
    with pytest.raises(ValueError, match=r"^is "):
        read_cursor(cursor[:size] + other + cursor[size + 1 :], NAMESPACE)


@given(
    st.text(max_size=40) | st.binary(max_size=60).map(lambda given: base64.urlsafe_b64encode(given).decode())
)
def test_any_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"^is "):
        read_cursor(text, NAMESPACE)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0",
        b"\0\0\0\0",
        b"\0\0\0\0persistent://t/n/\xff",
        b"\0\0\0\0nonsense",
        b"\xff\xff\xff\xffpersistent://t/n/a",
    ],
)
def test_a_sum_alone_makes_no_position(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"^is no cursor"):
        read_cursor(_summed(b"\x01" + content), NAMESPACE)


def _summed(content: bytes) -> str:
    made = google_crc32c.value(content).to_bytes(4, "big") + content
    return base64.urlsafe_b64encode(made).decode().rstrip("=")


def test_what_it_says_of_foreign_ones() -> None:
    with pytest.raises(ValueError, match=r"another namespace than t/other"):
        read_cursor(CURSOR, NamespaceName.parse("t/other"))
    with pytest.raises(ValueError, match="another version of the server"):
        read_cursor(_summed(b"\x02anything"), NAMESPACE)


def test_the_longest_name_has_a_cursor() -> None:
    namespace = NamespaceName("t" * 500, "n" * 500)
    position = Position(f"non-persistent://{namespace}/{'x' * MAX_NAME_BYTES}", 2**31 - 1)
    cursor = cursor_of(position)
    assert len(cursor) <= MAX_CURSOR
    assert read_cursor(cursor, namespace) == position
    with pytest.raises(ValueError, match="is no cursor"):
        read_cursor("A" * (MAX_CURSOR + 1), namespace)
