"""Quoting text in errors."""

from __future__ import annotations

import pytest

from broker_core.redaction.quotes import cut_short, quoted


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
