"""The part of a pattern that RE2 refuses, as it stands in what was sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.pattern_and_replica_bounds import MAX_PATTERN
from broker_core.patterns import compile_pattern
from broker_core.patterns.refused_patterns import refused_part


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("a(?!b)", "(?!"),
        ("é\U0001f600(?<=b)", "(?<="),
        ("(a)(b", "(b"[:1]),
        ("a)", ")"),
        ("[a", "[a"),
        ("a**", "*"),
        ("*a", "*"),
        ("[z-a]z-a", "z-a"),
        ("a\\", "\\"),
        ("x\\y", "\\y"),
        ("a{1001}", "{1001}"),
        ("a++", "++"),
        ("[[:foo:]]", "[:foo:]"),
        ("(?z)a", "(?z"),
        ("\\Q(?!\\E(?!b)", "(?!"),
        ("persistent://t/n/a(?=b)", "(?="),
        ("^(?=a)persistent://t/n/a", "(?="),
        ("^non-persistent://t/n/a(?=b)://rest", "(?="),
        ("http://t/n/.*", "http://"),
    ],
)
def test_the_part_is_that_of_the_sent_text(pattern: str, part: str) -> None:
    found = refused_part(pattern)
    assert found is not None
    assert found.offset is not None
    assert found.length is not None
    assert pattern[found.offset : found.offset + found.length] == part
    assert found.reason
    if part == "(?!":  # behind what is quoted
        assert found.offset == pattern.rindex(part)


@pytest.mark.parametrize("pattern", ["", "a.*", "persistent://t/n/[a-z]+", "(" * (MAX_PATTERN + 1)])
def test_what_is_not_refused_or_too_long_has_no_part(pattern: str) -> None:
    assert refused_part(pattern) is None


@given(st.text(max_size=30) | st.text("()[]{}*+?\\|^$.ab1,:<>=!PQE", max_size=12))
def test_any_text_has_a_part_within_it(text: str) -> None:
    found = refused_part(text)
    try:
        supported = compile_pattern(text, remember=False).supported
    except ValueError:
        supported = False
    if supported:
        assert found is None
    if found is not None and found.offset is not None and found.length is not None:
        assert 0 <= found.offset <= found.offset + found.length <= len(text)
