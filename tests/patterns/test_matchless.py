"""Which patterns can match no topic of a namespace, and that no other is taken for one."""

from __future__ import annotations

from ast import literal_eval

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker_core.names import NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.patterns.matchless import no_match
from tests.support.examples import examples
from tests.support.regexes import Regex, full_match, is_valid, noise, regexes

NAMESPACE = NamespaceName("t", "n")


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("orders.*", "such as 't/n/orders.*'"),
        ("^orders-[0-9]+$", "such as 't/n/orders-[0-9]+$'"),
        ("orders|bills", "such as 't/n/(?:orders|bills)'"),
        ("persistent://orders", "such as 't/n/orders'"),
        ("", "so here it begins with t/n/"),
        ("t/n/", "so here it begins with t/n/"),  # a topic has a name
        ("t/n", "so here it begins with t/n/"),
        ("t/other/.*", "so here it begins with t/n/"),
        ("t/n2/.*|t/m/.*", "so here it begins with t/n/"),
        ("non-persistent://T/n/.*", "so here it begins with t/n/"),
        ("o" * 300, "…"),
        ("^^orders", "such as 't/n/orders'"),
        ("\\A^bills$|^orders|^x", "such as 't/n/(?:bills$|orders|x)'"),
        ("^*orders", "so here it begins with t/n/"),
        ("orders^|x$y", "so here it begins with t/n/"),
        ("\\Qa|b", "such as 't/n/(?:\\\\Qa|b\\\\E)'"),
        ("orders" * 100, "so here it begins with t/n/"),
    ],
)
def test_what_a_client_is_told(pattern: str, advice: str) -> None:
    told = no_match(compile_pattern(pattern), NAMESPACE)
    assert told is not None
    assert "can match no topic of t/n: a pattern matches the whole of tenant/namespace/topic" in told
    assert advice in told


@pytest.mark.parametrize(
    "pattern",
    [
        *(".*", "t/n/.*", "^t/n/a$", "persistent://t/n/orders", "t/[a-z]+/x", "(?i)T/N/x", "t/n/a|elsewhere"),
        *("[^/]+/n/x", "(t|u)/n/.*", "t/./x", "t/n.x", "\\Qt/n/\\Ex", "x?t/n/a", "t/n/(?=x)", "(?=t)x"),
        *("t/n/\U0010ffff", ".rders"),  # as far as the beginning tells
    ],
)
def test_what_may_match(pattern: str) -> None:
    assert no_match(compile_pattern(pattern), NAMESPACE) is None


@pytest.mark.parametrize(
    "pattern", ["t/n/a-partition-0", "^t/n/a\\-partition-12$", "persistent://t/n/a-partition-3"]
)
def test_the_name_of_a_partition_matches_no_topic(pattern: str) -> None:
    found = no_match(compile_pattern(pattern), NAMESPACE)
    assert found is not None
    assert found.endswith("gives all of their partitions, such as 't/n/a'")


@pytest.mark.parametrize(
    "pattern", ["t/n/a-partition-00", "t/n/a-partition-", "t/n/a-partition-x", "t/n/-partition-3"]
)
def test_what_is_the_name_of_no_partition_may_match(pattern: str) -> None:
    assert no_match(compile_pattern(pattern), NAMESPACE) is None


def _assert_no_false_alarm(regex: Regex, more: list[str]) -> None:
    pattern = compile_pattern(regex.text)
    told = no_match(pattern, NAMESPACE)
    if told is None:
        return
    if "such as " in told:
        proposed = literal_eval(told.rpartition("such as ")[2])
        assert no_match(compile_pattern(proposed), NAMESPACE) is None
        for sample in regex.samples:
            if sample and full_match(regex.text, sample):
                assert full_match(proposed, f"t/n/{sample}"), (regex.text, proposed, sample)
    for local in (*regex.samples, *more):
        for form in (local, f"t/n/{local}"):
            if form.startswith("t/n/") and len(form) > 4:
                assert not full_match(regex.text, form), (regex.text, form)


@settings(max_examples=examples(250))
@given(
    regexes(("", "t/n/", "t/", "t/n", "^t/n/", "(?i)T/n/", "(?:t/n/|x)", "[s-u]/n/", ".", "t/n/a")),
    st.lists(st.text(max_size=6), max_size=5),
)
@example(Regex("(?i)ſ/n/a|T/n/K", ("t/n/\u212a",)), [])
@example(Regex("t/n/(?:|b)", ("t/n/b",)), ["b"])
def test_nothing_that_re2_matches_is_warned_of(regex: Regex, more: list[str]) -> None:
    if is_valid(regex.text):
        _assert_no_false_alarm(regex, more)


@settings(max_examples=examples(100))
@given(noise(), st.lists(st.text("abst/n-", max_size=6), max_size=5))
def test_any_text(regex: Regex, more: list[str]) -> None:
    if is_valid(regex.text) and "\\C" not in regex.text:
        _assert_no_false_alarm(regex, more)
