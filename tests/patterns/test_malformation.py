r"""Malformed patterns: an error only for text that is not a regular expression in any dialect."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given

from broker_core.patterns.malformation import malformation
from tests.support.one_test import in_one_test
from tests.support.regexes import HOSTILE, Regex, is_valid, noise, regexes

BROKEN = [
    *(
        "(",
        ")",
        "a(",
        "a)",
        "(a",
        "(a))",
        "x)|(?:.*",
        "((a)",
        "(?:a",
        "(?i",
        "(?=a",
        "(?<!a",
        "(?#a",
        "(?P<n>a",
        "(?",
    ),
    *("[", "[a", "a[", "[^", "[]", "[^]", "[a\\]", "[[:alpha:]", "[a[b", "[\\", "[a-"),
    *("\\", "a\\", "\\\\\\", "(a\\", "a)\\"),
    *(
        "a**",
        "a*+*",
        "a+*",
        "a?*",
        "a*??",
        "a+++",
        "a?+?",
        "a{2}*",
        "a{2}??",
        "(a)**",
        "[a]**",
        "\\d**",
        ".**",
        "a**b",
    ),
    *("*", "*a", "+", "?", "(*a", "(*)", "(+)", "(?:*)", "a|*", "|*b", "a(|+b)", "(?i)*", "(?s)?a"),
    *("\\C(?=a)", "(?!a)\\C", "a++\\C"),
]
OF_A_DIALECT = [
    *("a++", "a*+", "a?+", "a{2}+", "a{2,3}+b", "(?:a|b)++", "[ab]*+"),
    *("(?=a).*", "(?!a).*", "(?<=a)b", "(?<!a)b", "(?!(test2|test3|other)-).+-topic(-.*)?", "(?=a)*"),
    *("(a)\\1", "(?<n>a)\\k<n>", "(?P<n>a)(?P=n)", "\\k<n>", "\\g{1}", "\\g{-1}*", "\\g<n>"),
    *(
        "\\p{Alpha}+",
        "\\p{IsAlphabetic}",
        "\\p{javaLowerCase}",
        "\\P{L1}",
        "\\h",
        "\\R",
        "\\X",
        "\\G",
        "\\Z",
        "\\e",
    ),
    *("\\u0041", "\\cA", "\\0101", "\\x{110000}", "\\N{BULLET}", "\\o{101}", "\\8", "\\Qa\\E\\E", "\\b{gcb}"),
    *("a{1}{2}", "a{1001}", ".{1001}", "a{2,1}", "{2}", "a|{2}", "(?i){3}", "a{99999999999999999999}"),
    *("(?>a)", "(?>a|b)*", "(?|a|b)", "(?#comment)a", "a(?#c)*", "(?#a(b)", "(?~a)"),
    *(
        "(?x)a # (",
        "(?x: a )",
        "(?ix-s:a)",
        "(?x)[",
        "(?xx)a",
        "a(?x)b\\",
        "(?d)a",
        "(?u)a",
        "(?L)a",
        "(?J)a",
    ),
    *(
        "[a&&[^b]]",
        "[a[b]]",
        "[[a]&&[b]]",
        "[a-z&&[def]]",
        "[\\Q]\\E]",
        "[[:foo:]]",
        "[\\p{Alpha}]",
        "[z-a]",
        "[a[:]b]]",
    ),
    *("\\Q(\\E(?=a)", "\\Q**(?=a", "(?=\\Q)\\E)", "(?=[)])", "(?=\\))", "(?=a[]b)])"),
    *(
        "(?<name>(?=a))",
        "(?'n'a)",
        "(?<n-m>a)",
        "(?1)",
        "(?R)",
        "a(?R)?b",
        "(?+1)",
        "(?-1)",
        "(?&n)",
        "(?P>n)",
        "(?(1)a|b)",
    ),
    *("(*ACCEPT)", "(*UTF8)a", "(*SKIP:n)a", "(?^i:a)", "(?C1)", "(?{code})", "((((?=a))))"),
]


@in_one_test("text", BROKEN)
def test_no_dialect_has_this(text: str) -> None:
    why = malformation(text)
    assert why is not None
    assert len(why) < 100


@in_one_test("text", OF_A_DIALECT)
def test_some_dialect_may_have_this(text: str) -> None:
    assert malformation(text) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a)", "an unmatched ')'"),
        ("(a", "a missing ')'"),
        ("[a", "a missing ']'"),
        ("a\\", "a trailing backslash"),
        ("a**", "a stacked repetition operator '*'"),
        ("a|*?b", "nothing to repeat before '*?'"),
        ("(?=a)\\C", "\\C is not allowed: it matches bytes, not characters"),
    ],
)
def test_the_fault_is_named(text: str, says: str) -> None:
    assert malformation(text) == says


@given(regexes(starts=("", "t/n/")))
def test_what_re2_takes_is_well_formed(regex: Regex) -> None:
    if is_valid(regex.text):
        # A repetition of a repetition through an empty quote is RE2's own.
        assert malformation(regex.text) is None or "\\Q\\E" in regex.text or "(?" in regex.text


@given(noise())
def test_what_follows_a_fault_does_not_mend_it(regex: Regex) -> None:
    for broken in (")", "**"):
        text = f"a{broken}{regex.text}"
        assert malformation(text) is not None


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:6])
def test_a_text_of_twice_the_length_takes_twice_the_steps(text: str) -> None:
    assert calls_of(malformation, text) <= 2.5 * calls_of(malformation, text[: len(text) // 2]) + 100


def calls_of(function: Callable[[str], object], text: str) -> int:
    """How many functions are called, in Python and in C: what it costs, whatever else the machine does."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function(text)
    finally:
        sys.setprofile(before)
    return calls


def test_single_bytes_are_refused_in_a_class_too() -> None:
    assert malformation("[\\C]") is not None
    assert malformation("(?!x)[\\\\C]") is None
