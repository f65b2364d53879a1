"""Literal parts of patterns: what every match must contain, and no claim for unusual texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from broker_core.patterns.pattern_text import PatternShape, plain_shape, read_shape
from tests.support.examples import examples
from tests.support.regexes import Regex, full_match, is_valid, noise, regexes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t/n/a", PatternShape(literal="t/n/a", prefix="t/n/a", required=("t/n/a",))),
        ("^t/n/a$", PatternShape(literal="t/n/a", prefix="t/n/a", required=("t/n/a",))),
        (r"t/n/a\.b\-c", PatternShape(literal="t/n/a.b-c", prefix="t/n/a.b-c", required=("t/n/a.b-c",))),
        ("t/n/\n", PatternShape(literal="t/n/\n", prefix="t/n/\n", required=("t/n/\n",))),
        ("", PatternShape(literal="", prefix="")),
        ("t/n/a.*", PatternShape(prefix="t/n/a", any_tail=True, required=("t/n/a",))),
        ("^t/n/a.*?$", PatternShape(prefix="t/n/a", any_tail=True, required=("t/n/a",))),
        (".*", PatternShape(prefix="", any_tail=True)),
        ("^.*$", PatternShape(prefix="", any_tail=True)),
    ],
)
def test_plain_patterns_are_read_at_once(text: str, expected: PatternShape) -> None:
    assert plain_shape(text) == expected
    assert read_shape(text) == expected


@pytest.mark.parametrize(
    "text", ["a+", "a|b", "[a]", "(a)", "a.", "a.+", ".*a", r"\d", r"\Qa\E", "a{", "$a", "a^"]
)
def test_what_is_not_plain(text: str) -> None:
    assert plain_shape(text) is None


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        (r"\Qa.b\E", "a.b"),
        (r"a\Q*\Ec", "a*c"),
        ("a{b}", "a{b}"),
        ("a]", "a]"),
        (r"\Aab\z", "ab"),
        (r"a\Q\Eb", "ab"),
    ],
)
def test_literals_that_are_written_otherwise(text: str, literal: str) -> None:
    shape = read_shape(text)
    assert (shape.literal, shape.prefix, shape.required) == (literal, literal, (literal,))


@pytest.mark.parametrize(
    ("text", "prefix", "required"),
    [
        ("t/n/dev-.*-[0-9]+", "t/n/dev-", ("t/n/dev-", "-")),
        ("ab*cd", "a", ("cd", "a")),
        ("ab+cd", "a", ("ab", "cd")),
        ("ab{0,2}cd", "a", ("cd", "a")),
        ("ab{2}cd", "a", ("ab", "cd")),
        ("ab?", "a", ("a",)),
        (r"a\d+b", "a", ("a", "b")),
        (".*foo.*foo", "", ("foo",)),
        ("a(b|c)d", "a", ("a", "d")),
        ("a(bc)d", "a", ("a", "d")),
        (r"ab\.c[x]", "ab.c", ("ab.c",)),
        ("éa.b", "éa", ("éa", "b")),
    ],
)
def test_what_a_match_begins_with_and_cannot_do_without(
    text: str, prefix: str, required: tuple[str, ...]
) -> None:
    shape = read_shape(text)
    assert (shape.literal, shape.prefix, set(shape.required)) == (None, prefix, set(required))
    assert list(shape.required) == sorted(shape.required, key=lambda part: -len(part.encode()))


@pytest.mark.parametrize(
    ("text", "alternatives"),
    [
        ("a|b.*", ("a", "b.*")),
        ("a(b|c)d", ("a(?:b)d", "a(?:c)d")),
        ("a(?P<n>b|)d", ("a(?:b)d", "a(?:)d")),
        (r"a(\Qb|\E|c)d", (r"a(?:\Qb|\E)d", "a(?:c)d")),
        ("a(b)(c|d)", ()),
        ("a(b|c)*d", ()),
        ("|".join("abcdefghijklmnopq"), ()),
    ],
)
def test_alternatives_are_taken_apart(text: str, alternatives: tuple[str, ...]) -> None:
    assert read_shape(text).alternatives == alternatives


@pytest.mark.parametrize(
    "text",
    [
        *(
            "(?i)abc",
            "a(?i)bc",
            "(?i:abc)d",
            "(?:(?i)ab)c",
            "(?s)a.c",
            "(?m)^abc.",
            "(?U)ab+",
            "a(?-i)b",
            "(?)ab*",
        ),
        *(r"a+\Q\E*b", r"a\Q\E+\Q\E?", r"(\Q\E*)"),
    ],
)
def test_nothing_is_claimed_of_what_is_strange(text: str) -> None:
    assert read_shape(text) == PatternShape()


@pytest.mark.parametrize(
    ("text", "asserts"),
    [
        (r"ab\B.", True),
        (r"a\b|c", True),
        (r"(\b)a", True),
        (r"(?i)a\bc", True),
        (r"\Q\b\E.", False),
        ("^a.$", False),
    ],
)
def test_word_boundaries_are_seen(text: str, *, asserts: bool) -> None:
    assert read_shape(text).asserts is asserts


def _holds(regex: Regex) -> None:
    shape = read_shape(regex.text)
    for sample in regex.samples:
        if full_match(regex.text, sample):
            assert shape.literal in (None, sample)
            assert sample.startswith(shape.prefix or "")
            assert all(part in sample for part in shape.required)
            assert not shape.alternatives or any(full_match(part, sample) for part in shape.alternatives)
        else:
            assert shape.literal != sample
            assert not (shape.any_tail and sample.startswith(shape.prefix or "") and "\n" not in sample)


@settings(max_examples=examples(100))
@given(regexes())
def test_a_claim_holds_for_whatever_re2_matches(regex: Regex) -> None:
    if is_valid(regex.text):
        _holds(regex)


@settings(max_examples=examples(100))
@given(noise())
def test_a_claim_holds_for_any_text_that_is_a_pattern(regex: Regex) -> None:
    if is_valid(regex.text) and "\\C" not in regex.text:
        _holds(regex)
