from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.names.rule_patterns import NamespacePatterns, RulePattern

PATTERNS = st.text("ab*", max_size=8)
TEXTS = st.text("ab*", max_size=10)


def by_hand(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


@given(pattern=PATTERNS, text=TEXTS)
def test_a_star_is_any_text(pattern: str, text: str) -> None:
    assert RulePattern(pattern).matches(text) == by_hand(pattern, text)


@given(wide=PATTERNS, narrow=PATTERNS, text=TEXTS)
def test_a_pattern_that_covers_another_matches_all_of_it(wide: str, narrow: str, text: str) -> None:
    if RulePattern(wide).covers(narrow) and by_hand(narrow, text):
        assert by_hand(wide, text)


@given(one=PATTERNS, other=PATTERNS, text=TEXTS)
def test_a_text_that_two_patterns_match(one: str, other: str, text: str) -> None:
    both = RulePattern(one).overlap(RulePattern(other))
    if both is not None:
        assert by_hand(one, both)
        assert by_hand(other, both)
    elif "*" in one and "*" in other:
        assert not (by_hand(one, text) and by_hand(other, text))


@pytest.mark.parametrize(
    ("wide", "narrow", "covers"),
    [("*", "a*", True), ("a*", "ab", True), ("a*", "a*c", True), ("a*", "*a", False), ("ab", "a*", False)],
)
def test_what_covers_what(wide: str, narrow: str, covers: bool) -> None:
    assert RulePattern(wide).covers(narrow) is covers


@pytest.mark.parametrize("text", ["a.b", "[ab]", "a?b", "team-1", "ä*\n", "\\"])
def test_other_characters_are_themselves(text: str) -> None:
    assert RulePattern(text.replace("*", "")).matches(text.replace("*", ""))
    assert not RulePattern("a.b").matches("axb")
    assert not RulePattern("a?b").matches("axb")
    assert not RulePattern("[ab]").matches("a")


def test_a_hostile_role_comes_to_an_end() -> None:
    assert not RulePattern("*" + "a*" * 200 + "b").matches("a" * 1024)  # which backtracking would not


@pytest.mark.parametrize(
    ("patterns", "namespace", "matches"),
    [
        (["acme/*"], "acme/shop", True),
        (["acme/*"], "other/shop", False),
        (["*/shop", "x/y"], "acme/shop", True),
        (["*/shop", "x/y"], "acme/shop2", False),
        (["a*/s*"], "acme/shop", True),
        (["*/*"], "acme/shop", True),
        (["acme/*"], "", False),
        (["acme/*", "*"], "", True),
        ([], "acme/shop", False),
    ],
)
def test_a_namespace_matches_by_its_two_parts(patterns: list[str], namespace: str, matches: bool) -> None:
    assert NamespacePatterns(patterns).matches(namespace) is matches
