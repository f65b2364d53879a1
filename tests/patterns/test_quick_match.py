"""Whether a pattern may match some names: no match is overlooked, and little else is taken for one."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from broker_core.patterns import TopicsPattern, compile_pattern
from broker_core.patterns.topics_pattern import may_match

PATTERNS = [
    "a/b/.*",
    "a/b/x.*",
    "a/b/x",
    "a/b/(x|y|zz).*",
    ".*",
    ".*-1.*",
    "a/b/[xy]-.*1",
    "a/b/x-[0-9]+",
    ".*xy.*z.*",
    "a/b/ä.*",
    "a/c/.*",
]


def pattern(text: str) -> TopicsPattern:
    return compile_pattern(f"persistent://{text}")


def forms() -> Iterator[bytes]:
    chosen = random.Random(5)
    for _ in range(300):
        yield f"a/b/{''.join(chosen.choices('xyzä-01', k=chosen.randint(1, 5)))}".encode()


@pytest.mark.parametrize("text", PATTERNS)
def test_what_matches_is_never_overlooked_and_little_else_is_taken_to(text: str) -> None:
    asked = pattern(text)
    for form in forms():
        assert may_match(asked, [b"a/b/none", form]) >= asked.matches(f"persistent://{form.decode()}")
        assert may_match(asked, [form]) == asked.matches(f"persistent://{form.decode()}")


def test_a_pattern_that_is_dear_to_compile_may_match_what_has_its_required_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = pattern("a/b/.*xy[0-9]")
    assert not may_match(asked, [b"a/b/xyz"])
    monkeypatch.setattr("broker_core.patterns.topics_pattern._QUICK_PROGRAM", 0)
    assert may_match(asked, [b"a/b/xyz"])
    assert not may_match(asked, [b"a/b/yx"])
