from __future__ import annotations

import pytest

from broker_core.redaction.printable_text import cut_short, printable, quoted


@pytest.mark.parametrize("text", ["", "größe 😀", "a b", "\\x1b"])
def test_what_a_terminal_shows_stays(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb\x07", "a\\x1b[31mb\\x07"),
        ("a\nb\r\tc\x00", "a\\nb\\r\\tc\\x00"),
        ("\x7f\x85\x9b31m", "\\x7f\\x85\\x9b31m"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\u202eabc\u2066\u200f", "\\u202eabc\\u2066\\u200f"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_it_would_obey_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "''"),
        ("a", "'a'"),
        ("a\n\0b", r"'a\n\x00b'"),
        ("x" * 200, repr("x" * 200)),
        ("x" * 201, repr("x" * 200 + "…")),
    ],
)
def test_a_text_is_escaped_and_cut(text: str, shown: str) -> None:
    assert quoted(text) == shown
    assert len(cut_short(text)) == min(len(text), 201)
