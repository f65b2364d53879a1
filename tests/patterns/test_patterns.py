r"""Patterns as a broker takes them: recorded answers, what is refused and how, and bounds that exclude no match."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import re2
from hypothesis import example, given, settings

from broker_core.errors import InvalidPattern
from broker_core.listing.listing import Listing
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import MAX_LENGTH, compile_now, compile_pattern, strip_scheme
from tests.support.regexes import HOSTILE, Regex, full_match, is_valid, noise, regexes
from tests.support.vectors import pattern_vectors

VECTORS = pattern_vectors()
PREFIX = f"persistent://{VECTORS['namespace']}/"


@pytest.fixture(scope="module")
def golden() -> dict[str, Listing]:
    """The recorded namespace in each mode: what the store of that broker had, hidden topics included."""
    namespace = NamespaceName.parse(VECTORS["namespace"])
    names = [PREFIX + local for local in VECTORS["stored_names"]]
    return {
        mode.name: Listing.from_names(namespace, mode, [] if mode is Mode.NON_PERSISTENT else names)
        for mode in Mode
    }


def _id(case: dict[str, Any]) -> str:
    return f"{case['topics_pattern']}-{case['mode']}"


@pytest.mark.parametrize("case", [case for case in VECTORS["cases"] if case["re2"]], ids=_id)
def test_a_real_broker_lists_the_same(case: dict[str, Any], golden: dict[str, Listing]) -> None:
    selection = golden[case["mode"]].all()
    if case["topics_pattern"] is not None:
        selection = selection.matching(compile_pattern(case["topics_pattern"]))
    assert case["outcome"] == "listing"
    assert sorted(selection.names.to_pylist()) == sorted(PREFIX + local for local in case["topics"])
    assert selection.topics_hash == case["topics_hash"]


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


def test_all_recorded_cases_were_looked_at() -> None:
    assert len(VECTORS["cases"]) == 287


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("t/n/.*", "t/n/.*"),
        ("persistent://t/n/.*", "t/n/.*"),
        ("non-persistent://t/n/.*", "t/n/.*"),
        ("^persistent://t/n/x.*$", "^t/n/x.*$"),
        ("^non-persistent://t/n/x", "^t/n/x"),
        ("(non-)?persistent://t/n/x", "(non-)?t/n/x"),
        ("persistent://t/n/a://b", "t/n/a"),
        ("xpersistent://t/n/a", "xt/n/a"),
        ("persistent://", ""),
    ],
)
def test_the_scheme_is_removed_as_the_broker_does(raw: str, text: str) -> None:
    assert strip_scheme(raw) == text
    assert compile_pattern(raw).text == text
    assert compile_pattern(raw).raw == raw


@pytest.mark.parametrize(
    "raw", ["http://t/n/x", "://t/n/x", "topic://t/n/x", "PERSISTENT://t/n/x", "(persistent)://a"]
)
def test_another_scheme_is_an_error(raw: str) -> None:
    with pytest.raises(InvalidPattern, match="Does not support topic domain"):
        compile_pattern(raw)


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


@pytest.mark.parametrize(
    ("raw", "name", "expected"),
    [
        ("persistent://t/n/a", "non-persistent://t/n/a", True),
        ("t/n/a", "persistent://t/n/a-partition-3", True),
        ("t/n/a-partition-3", "persistent://t/n/a-partition-3", False),
        ("t/n/a-partition-007", "persistent://t/n/a-partition-007", True),
        ("t/n", "persistent://t/n/a", False),
        ("n/a", "persistent://t/n/a", False),
        ("t/n/.", "persistent://t/n/😀", True),
        ("(?i)t/n/k", "persistent://t/n/\u212a", True),
        ("(?i)t/n/s", "persistent://t/n/ſ", True),
        (r"t/n/\w", "persistent://t/n/é", False),
        ("t/n/a$", "persistent://t/n/a\n", False),
        (".*", "persistent://t/n/a\nb", True),
        (".*.*", "persistent://t/n/a\nb", False),
    ],
)
def test_one_name(raw: str, name: str, *, expected: bool) -> None:
    assert compile_pattern(raw).matches(name) is expected


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


@settings(max_examples=500)
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


@settings(max_examples=300)
@given(noise())
def test_any_text_is_supported_as_far_as_re2_takes_it(regex: Regex) -> None:
    if is_valid(regex.text) and "\\C" not in regex.text:
        _assert_bounds(regex)
        return
    try:
        assert not compile_pattern(regex.text).supported
    except InvalidPattern:
        pass


def test_a_pattern_that_is_too_long_is_never_compiled() -> None:
    assert MAX_LENGTH == 1024
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


@pytest.mark.parametrize(
    "raw", [r"(\pL|\pN){300}", r"\pL{60}", r"(?:\pL*\pN*){60}.*x", r"((a{100}){100}){100}"]
)
def test_a_program_that_is_too_large_is_unsupported(raw: str) -> None:
    pattern = compile_pattern(raw)
    assert not pattern.supported
    assert pattern.plan == "unsupported"


@pytest.mark.parametrize(
    "raw", ["(.*){1000}", ".{1000}", "[^x]{1000}", "(.?){1000}", r"\w{1000}", "(?i)" + "k" * 1000]
)
def test_large_programs_that_are_still_quick_are_run(raw: str) -> None:
    pattern = compile_pattern(raw)
    assert pattern.supported
    assert pattern.program_size <= 12_000


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
    """It happens on the event loop; `make bench` says how long the longest takes."""
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


@pytest.mark.parametrize(
    "piece", ["a{100}", "(?:a?){100}", ".{100}", "[^a]{100}", r"\p{Greek}{180}", r"(?i)\W{105}"]
)
def test_the_bound_on_memory_refuses_no_program_of_the_size_that_is_run(piece: str) -> None:
    options = re2.Options()
    options.log_errors = False
    size = re2.compile(piece, options).programsize
    pattern = compile_pattern(piece * (11_900 // size), max_length=100_000)
    assert pattern.supported
    assert pattern.program_size > 10_000
