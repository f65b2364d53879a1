"""Checks of masks: accepted types, and types that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from broker_core.plugins.hooks.masks import checked_mask
from tests.support.narrowed import present


@pytest.mark.parametrize(
    "mask",
    [
        pa.array([True, False, True]),
        pa.chunked_array([[True], [False, True]]),
        np.array([True, False, True]),
        np.array([True, True, False, False, True, True])[::2],
        pa.array([False, True, False, True])[1:],
    ],
    ids=["arrow", "chunked", "numpy", "numpy strided", "arrow slice"],
)
def test_boolean_arrays_are_masks(mask: Any) -> None:
    checked = present(checked_mask(mask, 3))
    assert checked.type == pa.bool_()
    assert len(checked) == 3
    assert checked.to_pylist()[0] is True


def test_none_shows_all() -> None:
    assert checked_mask(None, 3) is None


@pytest.mark.parametrize(
    ("mask", "problem"),
    [
        ([True, False, True], "the mask is a list"),
        (True, "the mask is a bool"),
        (pa.array([1, 0, 1]), "an Arrow array of int64"),
        (np.array([1, 0, 1]), "a numpy array of int64"),
        (np.array([[True, False, True]]), "2-dimensional"),
        (pa.array(["a", "b", "c"]), "an Arrow array of string"),
        (pa.scalar(True), "not an Arrow or numpy array"),
        (pa.array([True]), "1 value for 3 topics"),
        (np.zeros(4, np.bool_), "4 values for 3 topics"),
        (pa.array([True, None, False]), "1 null"),
        (pa.chunked_array([[True], [None, False]]), "1 null"),
    ],
)
def test_anything_else_is_refused(mask: object, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        checked_mask(mask, 3)


def test_a_list_says_what_to_write() -> None:
    with pytest.raises(
        TypeError, match=r"not an Arrow or numpy array of booleans: write pyarrow.array\(mask\)"
    ):
        checked_mask([True, False], 2)
