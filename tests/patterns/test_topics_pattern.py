"""Matches of compiled patterns: the recorded answers of a broker, and single names."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.listing.listing import Listing
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from tests.support.one_test import in_one_test
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


@in_one_test("case", [case for case in VECTORS["cases"] if case["re2"]])
def test_a_real_broker_lists_the_same(case: dict[str, Any], golden: dict[str, Listing]) -> None:
    selection = golden[case["mode"]].all()
    if case["topics_pattern"] is not None:
        selection = selection.matching(compile_pattern(case["topics_pattern"]))
    assert case["outcome"] == "listing"
    assert sorted(selection.names.to_pylist()) == sorted(PREFIX + local for local in case["topics"])
    assert selection.topics_hash == case["topics_hash"]


def test_all_recorded_cases_were_looked_at() -> None:
    assert len(VECTORS["cases"]) == 287


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
