"""Sealed fields: read and written by who has the descriptor, and by nobody else."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from broker_core.sealed import Sealed, seal


class Box(Sealed):
    """Holds one thing."""

    __slots__ = ("__weakref__", "_held")


held = seal(Box, "_held")


def box(value: Any) -> Box:
    made = object.__new__(Box)
    held.__set__(made, value)
    return made


def test_only_the_descriptor_reads_and_writes() -> None:
    made = box(7)
    assert held.__get__(made) == 7
    for write in (setattr, object.__setattr__):
        with pytest.raises(AttributeError):
            write(made, "_held", 8)
    with pytest.raises(AttributeError):
        _ = made._held  # type: ignore[attr-defined]
    assert not hasattr(made, "__dict__")
    held.__set__(made, 9)
    assert held.__get__(made) == 9


def test_it_is_not_called_and_nothing_is_a_kind_of_it() -> None:
    with pytest.raises(TypeError, match="a Box is made by the functions"):
        Box(7)
    with pytest.raises(TypeError, match="Box is final"):
        type("Other", (Box,), {})


def test_one_that_nobody_filled_holds_nothing() -> None:
    with pytest.raises(AttributeError):
        held.__get__(object.__new__(Box))


def test_a_copy_is_the_same_and_none_leaves_the_process() -> None:
    made = box(7)
    assert copy.copy(made) is made
    assert copy.deepcopy([made])[0] is made
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(made)
