"""Problems that plugins report, as texts that are safe to show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from broker_core.plugins.raised_exceptions import LONGEST
from broker_core.plugins.reported_problems import MOST, as_problems


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ([], ()),
        ("orders.seg is cut short", ("orders.seg is cut short",)),
        ("", ()),
        (["one", " ", "two"], ("one", "two")),
        (("one",), ("one",)),
        ({"one": 1}.keys(), ("one",)),
        (["a\x1b[2Jb\ud800"], ("a\\x1b[2Jb\\ud800",)),
    ],
)
def test_texts(given: Any, texts: Iterable[str]) -> None:
    assert as_problems(given) == texts


def test_their_number_and_length_are_bounded() -> None:
    assert [len(text) for text in as_problems("x" * 1_000_000)] == [LONGEST]
    found = as_problems([f"p-{number}" for number in range(MOST + 7)])
    assert (len(found), found[-1]) == (MOST + 1, "and 7 more")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, r"a list of strings, \[\] if all is well, not NoneType"),
        (5, "not int"),
        (b"text", "not bytes"),
        ({"a": 1}, "not dict"),
        ((text for text in "ab"), "not generator"),
        ([OSError("x")], r"not OSError: write str\(problem\)"),
        (["fine", None], "not NoneType"),
    ],
)
def test_what_is_none_says_what_to_write(given: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        as_problems(given)
