"""Prefixes of names, against looking at each of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker_core.names.rule_patterns import Prefixes

TEXTS = st.text("abé", max_size=5)


@given(prefixes=st.lists(TEXTS, max_size=8), name=TEXTS)
def test_a_name_has_one_of_them(prefixes: list[str], name: str) -> None:
    found = Prefixes(prefixes)
    assert bool(found) is bool(prefixes)
    assert found.cover(name.encode()) is any(map(name.startswith, prefixes))


@given(prefixes=st.lists(TEXTS, max_size=8), names=st.lists(TEXTS, min_size=1, max_size=8))
def test_those_of_a_range_are_enough(prefixes: list[str], names: list[str]) -> None:
    in_order = sorted(name.encode() for name in names)
    between = Prefixes(prefixes).between(in_order[0], in_order[-1])
    assert list(between) == sorted(set(between))
    assert not any(one != other and one.startswith(other) for one in between for other in between)
    for name in names:
        assert any(map(name.encode().startswith, between)) is any(map(name.startswith, prefixes))


def test_those_in_front_and_behind_are_left_out() -> None:
    prefixes = Prefixes(["a", "b", "bb", "c", "d"])
    assert list(prefixes.between(b"bx", b"cz")) == [b"b", b"c"]
    assert list(prefixes.between(b"e", b"f")) == []
