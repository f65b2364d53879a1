"""A principal is checked when it is made, and does not change."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest

from broker_core.access.principal import LONGEST_ROLE, Principal


def test_a_principal_is_a_role_and_an_end() -> None:
    assert Principal("alice").expires_at is None
    assert Principal("alice", 17).expires_at == 17.0
    assert type(Principal("alice", 17).expires_at) is float
    assert Principal("alice") == Principal("alice") != Principal("alice", 1.0)


@pytest.mark.parametrize(
    "role", ["a", " a", "CN=a, O=b", "käthe", "名前", "a\u00a0b", "\ufffd", "x" * LONGEST_ROLE]
)
def test_any_text_is_a_role(role: str) -> None:
    assert Principal(role).role == role


@pytest.mark.parametrize(
    "role",
    ["", " ", "\t\n", "a\nb", "a\x00", "\x1b[31m", "a\u2028b", "a\ud800", "\x85", "x" * (LONGEST_ROLE + 1)],
)
def test_text_that_a_log_cannot_show_is_no_role(role: str) -> None:
    with pytest.raises(ValueError, match="role"):
        Principal(role)


@pytest.mark.parametrize("arguments", [(None,), (b"a",), (7,), ("a", "7"), ("a", True)])
def test_other_types_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"role|expires_at"):
        Principal(*arguments)


@pytest.mark.parametrize("end", [math.nan, math.inf, -math.inf])
def test_an_end_is_finite(end: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Principal("a", end)


def test_a_kind_of_string_counts_by_its_characters() -> None:
    class Two(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "root"

    assert type(Principal(Two("alice")).role) is str
    assert Principal(Two("alice")).role == "alice"


def test_a_principal_does_not_change() -> None:
    principal = Principal("alice", 5)
    with pytest.raises(AttributeError):
        principal.role = "root"  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(principal, "role", "root")
    assert principal.role == "alice"
    assert copy.deepcopy(principal) == pickle.loads(pickle.dumps(principal)) == principal
