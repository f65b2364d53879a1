"""Tests of numbers with what they count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import broker_core
from broker_core.counted import counted

_ROOT = Path(broker_core.__file__).parents[1]
_NOUNS = "topics|names|rows|lines|clients|partitions|namespaces|questions|patterns|failures|files|users|values|hashes"
#: A number in a text with a noun that is always in the plural; limits are never 1.
_ALWAYS_MANY = re.compile(
    rf"\{{(?!domain|hard|[^}}]*(?:!r|_limit|shown|[A-Z]{{3}}))[^{{}}]+\}} (?:{_NOUNS})\b"
)


@pytest.mark.parametrize(
    ("count", "words", "text"),
    [
        (1, ("topic",), "1 topic"),
        (0, ("topic",), "0 topics"),
        (2, ("entry", "entries"), "2 entries"),
        (1, ("entry", "entries"), "1 entry"),
    ],
)
def test_one_is_told_in_the_singular(count: int, words: tuple[str, ...], text: str) -> None:
    assert counted(count, *words) == text


def test_a_number_is_formatted_as_asked() -> None:
    assert counted(1_000_000, "row", spec=",") == "1,000,000 rows"


def test_no_text_has_a_number_before_a_noun_in_the_plural() -> None:
    found = [
        f"{path.relative_to(_ROOT)}:{number}: {line.strip()}"
        for folder in ("broker_core", "plugins")
        for path in sorted((_ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if _ALWAYS_MANY.search(line)
    ]
    assert "\n".join(found) == ""
