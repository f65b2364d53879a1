"""Copies with some fields replaced by name; all other fields, future ones too, stay the same."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from broker_core.immutable.sealed import copied


@dataclass(frozen=True, slots=True)
class Question:
    city: str
    streets: tuple[str, ...] = ()
    asker: object = field(default_factory=object, compare=False)


@dataclass(frozen=True, slots=True)
class Newer(Question):
    wants: frozenset[str] = frozenset()


def test_a_copy_has_every_field() -> None:
    question = Newer("Oslo", ("a", "b"), wants=frozenset({"x"}))
    copy = copied(question, city="Bergen")
    assert type(copy) is Newer
    assert copy == replace(question, city="Bergen")
    assert copy.asker is question.asker
    assert copied(question) == question
    with pytest.raises(FrozenInstanceError):
        copy.city = "Oslo"  # type: ignore[misc]


def test_what_is_no_field_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="Question has no field 'wants'"):
        copied(Question("Oslo"), wants=frozenset())
