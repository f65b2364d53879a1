"""Names of ACLs: literal ones, prefixes and the wildcard, for one name and for a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from broker_core.kafka.acls.bindings import AclBinding, Operation, PatternType, Permission, ResourceType
from broker_core.kafka.acls.name_patterns import NamePatterns, SortedNames


def _patterns(*literals: str, prefixes: tuple[str, ...] = ()) -> NamePatterns:
    named = [(name, PatternType.LITERAL) for name in literals] + [
        (name, PatternType.PREFIXED) for name in prefixes
    ]
    return NamePatterns(
        AclBinding(ResourceType.TOPIC, name, pattern, "User:ann", "*", Operation.READ, Permission.ALLOW)
        for name, pattern in named
    )


def _marked(patterns: NamePatterns, *names: str) -> list[str]:
    marks = np.zeros(len(names), np.bool_)
    column = pa.array([name.encode() for name in names], pa.large_binary())
    patterns.mark(SortedNames(column), marks, value=True)
    assert marks.tolist() == [patterns.matches(name.encode()) for name in names]
    return [name for name, marked in zip(names, marks, strict=True) if marked]


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (_patterns(), []),
        (_patterns("ab", "nowhere", "A", "zz"), ["ab"]),
        (_patterns(prefixes=("ab",)), ["ab", "abc", "abé"]),
        (_patterns(prefixes=("abc", "ab", "a")), ["a", "ab", "abc", "abé", "ac"]),
        (_patterns(prefixes=("*",)), []),
        (_patterns("*"), ["a", "ab", "abc", "abé", "ac", "b"]),
        (_patterns("b", prefixes=("abcd", "a.", "z", "ac")), ["ac", "b"]),
    ],
)
def test_names_are_marked_in_a_column_as_one_by_one(patterns: NamePatterns, found: list[str]) -> None:
    assert _marked(patterns, "a", "ab", "abc", "abé", "ac", "b") == found


def test_a_prefix_of_an_asterisk_is_no_wildcard() -> None:
    assert _marked(_patterns(prefixes=("*",)), "*", "*a", "b") == ["*", "*a"]


def test_many_literal_names_are_looked_for_at_once() -> None:
    names = [f"t-{row:03}" for row in range(200)]
    assert _marked(_patterns(*names[::5], "t-999"), *names) == names[::5]


def test_no_name_is_marked_in_an_empty_column() -> None:
    assert _marked(_patterns("a", prefixes=("b",))) == []
