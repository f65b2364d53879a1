"""Tokens of patterns: every character once, read as RE2 reads it, in linear time."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.patterns.pattern_text import TokenKind, close_quote, has_any_byte, tokens
from tests.support.one_test import in_one_test
from tests.support.regexes import HOSTILE, NOISE, Regex, full_match, is_valid, noise, regexes


def read(text: str, *, nested_classes: bool = False) -> list[tuple[str, str]]:
    return [(token.kind.name, token.text) for token in tokens(text, nested_classes=nested_classes)]


@in_one_test(
    "text, expected",
    [
        ("", []),
        ("abc", [("LITERAL", "abc")]),
        ("abc*", [("LITERAL", "ab"), ("LITERAL", "c"), ("REPEAT", "*")]),
        ("a{2,3}?", [("LITERAL", "a"), ("REPEAT", "{2,3}?")]),
        ("ab{2}", [("LITERAL", "a"), ("LITERAL", "b"), ("REPEAT", "{2}")]),
        ("a{2,}+", [("LITERAL", "a"), ("REPEAT", "{2,}+")]),
        ("a{,3}", [("LITERAL", "a"), ("LITERAL", "{"), ("LITERAL", ",3}")]),
        ("a{b}", [("LITERAL", "a"), ("LITERAL", "{"), ("LITERAL", "b}")]),
        ("a{٣}", [("LITERAL", "a"), ("LITERAL", "{"), ("LITERAL", "٣}")]),
        ("a.*?", [("LITERAL", "a"), ("ANY", "."), ("REPEAT", "*?")]),
        (r"\.\-\_", [("LITERAL", "."), ("LITERAL", "-"), ("LITERAL", "_")]),
        (r"\d\pL\p{Lu}", [("ESCAPE", "d"), ("ESCAPE", "p"), ("ESCAPE", "p")]),
        (r"\x41\x{212a}\101", [("ESCAPE", "x"), ("ESCAPE", "x"), ("ESCAPE", "1")]),
        (r"\Aa\z", [("BEGIN", "A"), ("LITERAL", "a"), ("END", "z")]),
        ("^a$", [("BEGIN", "^"), ("LITERAL", "a"), ("END", "$")]),
        (r"\b\B\C", [("ESCAPE", "b"), ("ESCAPE", "B"), ("ANY_BYTE", "C")]),
        (r"\Q(.*\E)", [("LITERAL", "(.*"), ("CLOSE", ")")]),
        (r"\Qab\E+", [("LITERAL", "a"), ("LITERAL", "b"), ("REPEAT", "+")]),
        (r"a\Q\E+", [("LITERAL", "a"), ("REPEAT", "+")]),
        (r"ab\Q\E\Q\E+", [("LITERAL", "a"), ("LITERAL", "b"), ("REPEAT", "+")]),
        (r"\Qab\E\Q\E+", [("LITERAL", "a"), ("LITERAL", "b"), ("REPEAT", "+")]),
        (r"\Qa\b", [("LITERAL", r"a\b")]),
        ("\\Qa\\", [("LITERAL", "a\\")]),
        (r"\\Qa", [("LITERAL", "\\"), ("LITERAL", "Qa")]),
        ("[]a]b", [("CLASS", "[]a]"), ("LITERAL", "b")]),
        ("[^]a]", [("CLASS", "[^]a]")]),
        (r"[\]a]", [("CLASS", r"[\]a]")]),
        ("[[:alpha:]]", [("CLASS", "[[:alpha:]]")]),
        ("[[:]]", [("CLASS", "[[:]"), ("LITERAL", "]")]),
        (r"[\Q]\E]", [("CLASS", r"[\Q]\E]")]),
        (
            "(a)(?:b)",
            [
                ("OPEN", "("),
                ("LITERAL", "a"),
                ("CLOSE", ")"),
                ("OPEN", "(?:"),
                ("LITERAL", "b"),
                ("CLOSE", ")"),
            ],
        ),
        ("(?P<名>a)", [("OPEN", "(?P<名>"), ("LITERAL", "a"), ("CLOSE", ")")]),
        ("(?<n>a)", [("OPEN", "(?<n>"), ("LITERAL", "a"), ("CLOSE", ")")]),
        ("(?i)(?i-s:)", [("FLAGS", "(?i)"), ("OPEN", "(?i-s:"), ("CLOSE", ")")]),
        ("(?=a)", [("OPEN", "(?="), ("LITERAL", "a"), ("CLOSE", ")")]),
        ("(?<!a)", [("OPEN", "(?<!"), ("LITERAL", "a"), ("CLOSE", ")")]),
        ("(?>a)", [("OPEN", "(?>"), ("LITERAL", "a"), ("CLOSE", ")")]),
        ("(?1)", [("OPEN", "(?"), ("LITERAL", "1"), ("CLOSE", ")")]),
        ("(?R)", [("OPEN", "(?"), ("LITERAL", "R"), ("CLOSE", ")")]),
        ("(?#a(b)c", [("COMMENT", "(?#a(b)"), ("LITERAL", "c")]),
        ("(*ACCEPT)", [("FLAGS", "(*ACCEPT)")]),
        ("a|b", [("LITERAL", "a"), ("ALTERNATIVE", "|"), ("LITERAL", "b")]),
        ("a\\", [("LITERAL", "a"), ("BROKEN", "a trailing backslash")]),
        ("a[b", [("LITERAL", "a"), ("BROKEN", "a missing ']'")]),
        ("(?#a", [("BROKEN", "a missing ')'")]),
    ],
)
def test_what_is_read(text: str, expected: list[tuple[str, str]]) -> None:
    assert read(text) == expected


def test_nested_classes_are_one_where_java_reads() -> None:
    assert read("[a[b]c]") == [("CLASS", "[a[b]"), ("LITERAL", "c]")]
    assert read("[a[b]c]", nested_classes=True) == [("CLASS", "[a[b]c]")]
    assert read("[a&&[^b]]", nested_classes=True) == [("CLASS", "[a&&[^b]]")]
    assert read("[a[b]", nested_classes=True) == [("BROKEN", "a missing ']'")]


@given(st.one_of(noise(), regexes()), st.booleans())
def test_tokens_follow_each_other_to_the_end(regex: Regex, nested: bool) -> None:
    position = 0
    for token in tokens(regex.text, nested_classes=nested):
        between = regex.text[position : token.start]
        assert re.fullmatch(r"(?:\\[QE])*", between), between  # nothing but the marks of quotes
        assert token.start <= token.end
        position = token.end
    rest = regex.text[position:]
    assert rest.endswith("\\E") or re.fullmatch(r"(?:\\[QE])*", rest), rest


@given(st.one_of(noise(), regexes()))
def test_what_re2_takes_is_not_broken(regex: Regex) -> None:
    if is_valid(regex.text):
        kinds = [token.kind for token in tokens(regex.text)]
        assert TokenKind.BROKEN not in kinds
        assert kinds.count(TokenKind.OPEN) == kinds.count(TokenKind.CLOSE)


@given(noise())
def test_a_closed_quote_means_the_same_and_ends(regex: Regex) -> None:
    closed = close_quote(regex.text)
    assert closed in (regex.text, regex.text + "\\E")
    if not is_valid(regex.text) or has_any_byte(regex.text):
        return
    for sample in regex.samples:
        assert full_match(rf"(?:{closed})", sample) == full_match(regex.text, sample)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "a"),
        (r"\Qa", r"\Qa\E"),
        (r"\Qa\E", r"\Qa\E"),
        (r"\\Qa", r"\\Qa"),
        (r"\Qa\Q", r"\Qa\Q\E"),
        ("a\\", "a\\"),
    ],
)
def test_an_open_quote_is_closed(text: str, expected: str) -> None:
    assert close_quote(text) == expected


@pytest.mark.parametrize(
    ("text", "has"),
    [
        (r"a\C", True),
        (r"(?s:\C+)", True),
        (r"\\C", False),
        (r"\Q\C\E", False),
        (r"\Q\C", False),
        (r"\Qa\E\C", True),
    ],
)
def test_single_bytes_are_seen(text: str, *, has: bool) -> None:
    assert has_any_byte(text) is has


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:6])
def test_the_longest_hostile_text_is_read_once(text: str) -> None:
    for nested in (False, True):
        found = [(token.start, token.end) for token in tokens(text, nested_classes=nested)]
        assert len(found) <= len(text)
        assert all(end <= start for (_, end), (start, _) in pairwise(found))


@given(st.text(st.sampled_from(NOISE), max_size=300), st.booleans())
def test_any_text_can_be_read(text: str, nested: bool) -> None:
    assert sum(1 for _ in tokens(text, nested_classes=nested)) <= len(text)
