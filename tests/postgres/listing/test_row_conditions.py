"""Row filters: never too few rows, for any pattern."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.errors import InvalidPattern
from broker_core.names import Mode, NamespaceName
from broker_core.names.partitions import partitioned_local_name
from broker_core.patterns import compile_pattern
from broker_core_postgres.listing.row_conditions import RowConditions, make_row_conditions
from tests.support.regexes import Regex, regexes

NAMESPACE = NamespaceName.parse("t/n")


def lets_through(row_conditions: RowConditions, local: str) -> bool:
    """The meaning of a filter's conditions, in Python."""
    matched = partitioned_local_name(local)
    key = matched.encode()
    if row_conditions.matches_nothing:
        return False
    if row_conditions.bounds and not any(
        low.encode() <= key and (high is None or key < high.encode()) for low, high in row_conditions.bounds
    ):
        return False
    return all(like_to_regex(like).fullmatch(matched) for like in row_conditions.like_patterns)


def like_to_regex(like: str) -> re.Pattern[str]:
    parts = re.findall(r"\\.|.", like, re.DOTALL)
    meaning = {"%": ".*", "_": "."}
    return re.compile("".join(meaning.get(part, re.escape(part[-1])) for part in parts), re.DOTALL)


@given(regexes(starts=("", "t/n/", "t", "^t/n/", "(?i)t/n/", ".*/n/", "t/.*", "[a-t]/n/a", "t/n/(?:a|b)")))
def test_every_match_is_let_through(regex: Regex) -> None:
    try:
        pattern = compile_pattern(regex.text)
    except InvalidPattern:
        return
    if not pattern.supported:
        return
    row_conditions = make_row_conditions(NAMESPACE, Mode.ALL, pattern, trigrams=True)
    for sample in regex.samples:
        local = sample.removeprefix("t/n/")
        if not local or "/" in local or "\0" in local:
            continue
        for name in (local, f"{local}-partition-3"):
            matches = pattern.matches(f"persistent://t/n/{name}")
            assert lets_through(row_conditions, name) or not matches, (row_conditions, name)
            if not row_conditions.needs_re2 and "\n" not in name:
                assert lets_through(row_conditions, name) == matches, (row_conditions, name)


@given(st.binary(max_size=6), st.binary(max_size=6), st.text(max_size=4))
def test_bounds_of_any_bytes_hold_every_text_between_them(low: bytes, high: bytes, text: str) -> None:
    if not text or "/" in text or "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        return
    base = compile_pattern("t/n/a.c")
    facts = {name: getattr(base, name) for name in dir(base) if not name.startswith("_")}
    bounds = {"ranges": ((b"t/n/" + low, b"t/n/" + high),), "required": (), "literal": None}
    pattern: Any = SimpleNamespace(**facts | bounds)  # compiled patterns never have such bytes as bounds
    if low <= text.encode() < high:
        assert lets_through(make_row_conditions(NAMESPACE, Mode.ALL, pattern), text)


@pytest.mark.parametrize(
    ("pattern", "bounds"),
    [
        ("t/n/abc", (("abc", "abc\1"),)),
        ("t/n/abc.*", (("abc", "abd"),)),
        ("t/n/abc\U0010ffff.*", (("abc\U0010ffff", "abd"),)),
        ("t/n/\ud7ff.*", (("\ud7ff", "\ue000"),)),
        ("t/n/.*", ()),
        ("t/.*", ()),
        ("t/n/(a|c)x.*", (("ax", "ay"), ("cx", "cy"))),
        ("t/n/.*abc", ()),
    ],
    ids=str,
)
def test_bounds(pattern: str, bounds: tuple[tuple[str, str | None], ...]) -> None:
    row_conditions = make_row_conditions(NAMESPACE, Mode.PERSISTENT, compile_pattern(pattern))
    assert row_conditions.bounds == bounds
    assert not row_conditions.matches_nothing


@pytest.mark.parametrize("pattern", ["x/n/abc", "t/m/a.*", "t/nn.*", "t/n/", "t/n", "t/n/a\0b", "t/n/a/b.*c"])
def test_what_cannot_be_in_the_namespace(pattern: str) -> None:
    row_conditions = make_row_conditions(NAMESPACE, Mode.PERSISTENT, compile_pattern(pattern), trigrams=True)
    local = "a"
    assert row_conditions.matches_nothing or not lets_through(row_conditions, local)


@pytest.mark.parametrize(
    ("pattern", "likes"),
    [
        (".*-x0123.*", ("%x0123%",)),  # the characters around the word are in most names
        (".*-abc-.*", ("%-abc-%",)),  # the word alone has too few trigrams
        (".*-abcd_efg-.*", ("%abcd%efg%",)),
        ("t/n/.*100%_off.*", ("%100\\%\\_off%",)),
        ("t/n/.*ab.*", ()),  # two letters are no trigram
        (".*back\\\\slash.*", ("%back%slash%",)),
        (".*n/begin.*end", ("%begin%", "%end%")),
    ],
    ids=str,
)
def test_substrings_are_looked_up(pattern: str, likes: tuple[str, ...]) -> None:
    row_conditions = make_row_conditions(NAMESPACE, Mode.PERSISTENT, compile_pattern(pattern), trigrams=True)
    assert set(row_conditions.like_patterns) == set(likes)
    assert row_conditions.needs_re2
    assert make_row_conditions(NAMESPACE, Mode.PERSISTENT, compile_pattern(pattern)).like_patterns == ()


def test_properties_and_domains() -> None:
    row_conditions = make_row_conditions(NAMESPACE, Mode.ALL, None, {"region": "eu"})
    assert (row_conditions.kind, row_conditions.domains) == ("search", ("non-persistent", "persistent"))
    assert make_row_conditions(NAMESPACE, Mode.PERSISTENT).domains == ("persistent",)
    assert make_row_conditions(NAMESPACE, Mode.ALL, None, {"region": "e\0u"}).matches_nothing
    assert make_row_conditions(NAMESPACE, Mode.ALL).kind == "namespace"
    assert make_row_conditions(NAMESPACE, Mode.ALL, compile_pattern("t/n/a.*")).kind == "range"
