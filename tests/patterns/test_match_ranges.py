"""The bounds of a pattern exclude no match."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given, settings

from broker_core.errors import InvalidPattern
from broker_core.patterns import compile_pattern
from tests.support.examples import examples
from tests.support.regexes import Regex, full_match, is_valid, noise, regexes


def test_ranges_of_alternatives_are_apart() -> None:
    ranges = compile_pattern("t/n/(b|d|bb)-x.*").ranges
    assert [(low[:6], high[:6]) for low, high in ranges] == [
        (b"t/n/b-", b"t/n/b-"),
        (b"t/n/bb", b"t/n/bb"),
        (b"t/n/d-", b"t/n/d-"),
    ]
    assert compile_pattern("t/n/(a|.*b)").ranges == compile_pattern("t/n/.*a").ranges
    assert compile_pattern("t/n/a|.*").ranges == ()


def test_the_range_of_a_prefix_is_exact_unless_there_is_a_newline() -> None:
    pattern = compile_pattern("t/n/a.*")
    assert pattern.ranges == ((b"t/n/a", b"t/n/a\xff"),)
    assert pattern.exact_range
    assert pattern.matches("persistent://t/n/ab")
    assert not pattern.matches("persistent://t/n/a\nb")


def _assert_bounds(regex: Regex) -> None:
    """Nothing that google-re2 matches is out of bounds, and Arrow's kernel says the same as google-re2."""
    pattern = compile_pattern(regex.text)
    assert pattern.supported
    column = pa.array(regex.samples, pa.large_string())
    expected = [full_match(regex.text, sample) for sample in regex.samples]
    if not pattern.match_all:  # the broker's own notion: even a newline
        assert pattern.match_column(column).to_pylist() == expected
    for sample, matches in zip(regex.samples, expected, strict=True):
        in_range = not pattern.ranges or any(low <= sample.encode() < high for low, high in pattern.ranges)
        if matches:
            assert in_range
            assert pattern.literal in (None, sample)
            assert all(part in sample for part in pattern.required)
        else:
            assert pattern.literal != sample
            assert not (pattern.exact_range and in_range and "\n" not in sample)


@settings(max_examples=examples(100))
@given(regexes())
@example(Regex(r"t/n/ab\B.", ("t/n/abc", "t/n/ab-")))
@example(Regex(r"t\b-", ("t-",)))
@example(Regex(r"a+\Q\E*b", ("b", "ab")))
@example(Regex("(?P<名>a)b", ("ab",)))
@example(Regex("(?:$)a|b", ("b",)))
@example(Regex("t\n(?m:^)x", ("t\nx",)))
@example(Regex("(?i)t/n/sk", ("t/n/SK", "t/n/ſ\u212a", "T/N/sk")))
@example(Regex("(?i)é[^a]", ("ÉB",)))
@example(Regex(r"\Qa|", ("a|",)))
@example(Regex("\\Qa\\", ("a\\",)))
@example(Regex("a(|b)c", ("ac", "abc")))
@example(Regex("(a|)(b|)", ("", "a", "b", "ab")))
def test_no_bound_excludes_what_re2_matches(regex: Regex) -> None:
    if is_valid(regex.text):
        _assert_bounds(regex)


@settings(max_examples=examples(100))
@given(noise())
@example(Regex(r"\\C", (r"\C",)))
def test_any_text_is_supported_as_far_as_re2_takes_it(regex: Regex) -> None:
    if is_valid(regex.text) and r"\C" not in regex.text.replace(r"\\", ""):
        _assert_bounds(regex)
        return
    try:
        assert not compile_pattern(regex.text).supported
    except InvalidPattern:
        pass
