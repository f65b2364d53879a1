"""Compiling patterns: refusals, caching, and small patterns that compile at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import re2

from broker_core.errors import InvalidPattern
from broker_core.patterns import MAX_LENGTH, compile_pattern
from broker_core.patterns.pattern_compiler import compile_now as compile_if_quick
from broker_core.patterns.topics_pattern import TopicsPattern
from broker_core.settings import PatternsSettings
from tests.support.regexes import HOSTILE
from tests.support.vectors import pattern_vectors

VECTORS = pattern_vectors()


def _id(case: dict[str, Any]) -> str:
    return f"{case['topics_pattern']}-{case['mode']}"


def compile_now(raw: str, has_time: Callable[[], bool] = lambda: True) -> TopicsPattern | None:
    return compile_if_quick(raw, max_length=MAX_LENGTH, has_time=has_time)


@pytest.mark.parametrize("case", [case for case in VECTORS["cases"] if not case["re2"]], ids=_id)
def test_what_re2_refuses_is_an_error_only_if_every_dialect_does(case: dict[str, Any]) -> None:
    raw = case["topics_pattern"]
    # Java has no comments of this kind, other dialects do.
    if case["outcome"] == "error" and "(?#comment)" not in raw:
        with pytest.raises(InvalidPattern, match="Invalid topics pattern"):
            compile_pattern(raw)
        return
    pattern = compile_pattern(raw)
    assert not pattern.supported
    assert pattern.plan == "unsupported"
    assert pattern.reason is not None
    assert pattern.reason.startswith("RE2 refuses it: ")
    assert (pattern.literal, pattern.ranges, pattern.required) == (None, (), ())
    with pytest.raises(InvalidPattern, match="Unsupported topics pattern"):
        pattern.match_column(pa.array(["a"], pa.large_string()))


@pytest.mark.parametrize(
    "raw",
    ["t/n/x)|(?:.*", "t/n/a**", "t/n/\\", "t/n/(", "t/n/[a", r"t/n/\C", r"(?i)t/n/a\C+", "*", r"\C{900}"],
)
def test_what_is_no_pattern_is_an_error_that_shows_it(raw: str) -> None:
    with pytest.raises(InvalidPattern) as caught:
        compile_pattern(raw)
    assert repr(raw) in str(caught.value)


def test_an_error_shows_the_beginning_of_a_long_pattern() -> None:
    with pytest.raises(InvalidPattern) as caught:
        compile_pattern("(" * 1000)
    assert len(str(caught.value)) < 400
    with pytest.raises(InvalidPattern, match="not valid Unicode"):
        compile_pattern("a\ud800")


@pytest.mark.parametrize(
    ("raw", "plan", "literal"),
    [
        (".*", "all", None),
        ("persistent://.*", "all", None),
        ("t/n/a", "literal", "t/n/a"),
        (r"t/n/\Qa.b\E", "literal", "t/n/a.b"),
        ("t/n/a.*", "range", None),
        ("t/n/(a|b)-.*", "range", None),
        ("t/n/a[0-9]", "range", None),
        ("a|b", "range", None),
        (".*a", "scan", None),
        ("^.*$", "scan", None),
        (r"\w+/n/a", "range", None),
        ("[^/]+/n/a", "scan", None),
        ("(?!a).*", "unsupported", None),
    ],
)
def test_the_plan(raw: str, plan: str, literal: str | None) -> None:
    pattern = compile_pattern(raw)
    assert (pattern.plan, pattern.literal) == (plan, literal)
    assert pattern.supported == (plan != "unsupported")


def test_a_pattern_that_is_too_long_is_never_compiled() -> None:
    assert MAX_LENGTH == PatternsSettings().max_length == 1024
    assert compile_pattern("a" * 1024).supported
    long = compile_pattern("(" * 1025)
    assert not long.supported
    assert long.reason == "longer than the maximum of 1024"
    # As Java counts: UTF-16 code units, with the scheme.
    assert compile_pattern("😀" * 512).supported
    assert not compile_pattern("😀" * 512 + "a").supported
    assert not compile_pattern("persistent://t/n/", max_length=16).supported
    assert compile_pattern("persistent://t/n/", max_length=17).supported


def test_a_pattern_is_compiled_once() -> None:
    assert compile_pattern("t/n/once.*[a-z]") is compile_pattern("t/n/once.*[a-z]")
    # What is refused for its length may be megabytes long, and is not kept.
    assert compile_pattern("a" * 2000) is not compile_pattern("a" * 2000)


SLOW = [
    *(
        "(?i)" + r"\pL" * 330,
        "[" + r"\pL" * 330 + "]",
        "(?i)[" + r"\PL\pL" * 160 + "]",
        "|".join([r"\pL"] * 250),
    ),
    *(
        r"((\pL?)+){70}",
        "(" * 400 + "a" + ")" * 400,
        "((a{1,10}){1,10}){1,10}",
        "(a?){500}a{500}",
        "(?:" * 200 + ")" * 200,
    ),
    *(
        "|".join(f"{chr(0x4E00 + i)}x" for i in range(340)),
        "|".join("a" * i for i in range(1, 44)),
        "(.{1,30}){30}",
    ),
    *(
        "(" + "|".join(["(?:a|b)c"] * 100) + ")x",
        "(?:a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p)" + "(?:.?x){200}",
        "(x+x+)+y",
    ),
    *("[" + "".join(chr(0x400 + 2 * i) for i in range(500)) + "]{2}", "(?i)(ſ|\u212a){300}", "(a*)*b" * 160),
]


@pytest.mark.parametrize("raw", [*HOSTILE, *SLOW], ids=lambda raw: raw[:16])
def test_the_worst_patterns_have_an_end(raw: str) -> None:
    """Patterns are compiled on the event loop; `make bench` says how long the longest takes."""
    assert len(raw) <= 1024
    re2.purge()
    try:
        pattern = compile_pattern(raw)
    except InvalidPattern:
        return
    assert (pattern.program_size <= 12_000) if pattern.supported else pattern.reason


def test_a_pattern_need_not_be_remembered() -> None:
    one = compile_pattern("t/n/not-remembered.*", remember=False)
    assert one == compile_pattern("t/n/not-remembered.*", remember=False)
    assert one is not compile_pattern("t/n/not-remembered.*", remember=False)
    assert compile_pattern("t/n/not-remembered.*") is compile_pattern("t/n/not-remembered.*")


@pytest.mark.parametrize(
    "raw",
    [
        "persistent://public/default/orders-[a-z]+-[0-9]+",
        "public/default/(eu|us|ap)-.*-[0-9]{4}",
        "(?i)public/default/.*orders",
        "public/default/orders-" + "x" * 900 + ".*",
        "x" * 2000,
    ],
)
def test_an_ordinary_pattern_is_compiled_at_once(raw: str) -> None:
    at_once = compile_now(raw)
    assert at_once is not None
    assert at_once == compile_pattern(raw, remember=False)


@pytest.mark.parametrize(
    "raw",
    [r"(\pL|\pN){100}now", r"\pL{9}now", "(.*){1000}now", "(?i)[^a-z\u00e4]{300}now", "now|" * 60 + "x.*y"],
)
def test_a_dear_pattern_is_not_compiled_at_once(raw: str) -> None:
    assert compile_now(raw) is None
    later = compile_pattern(raw)
    assert compile_now(raw) is later  # it is remembered


def test_without_time_only_what_is_known_is_compiled_at_once() -> None:
    asked: list[None] = []

    def no_time() -> bool:
        asked.append(None)
        return False

    raw = "public/default/no-time-[a-z]"
    assert compile_now(raw, has_time=no_time) is None
    assert asked
    assert compile_now("public/default/no-time.*", has_time=no_time) is not None
    assert compile_now(raw) is compile_now(raw, has_time=no_time) is not None


def test_what_is_broken_is_an_error_at_once() -> None:
    with pytest.raises(InvalidPattern, match=r"missing '\)'"):
        compile_now("public/default/(x")
    with pytest.raises(InvalidPattern, match="topic domain"):
        compile_now("kafka://public/default/x")


@pytest.mark.parametrize("flags", ["", "(?i)"])
def test_the_number_of_unicode_classes_is_bounded(flags: str) -> None:
    """RE2 makes hundreds of ranges of each before it looks at its bound on memory."""
    allowed, more = flags + r"\p{Greek}" * 20, flags + r"\p{Greek}" * 21
    assert compile_pattern(allowed).supported
    assert compile_pattern(more).reason == "it names more than 20 Unicode classes"
    with pytest.raises(InvalidPattern):
        compile_pattern("(" + more)  # broken all the same
