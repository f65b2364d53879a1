"""What plugins of a chain may answer, in the words that they are told otherwise."""

from __future__ import annotations

import pytest

from broker_core.plugins.namespace_chain import NOBODY, check_mask, not_asked
from tests.support.plugins import asked


def test_masks() -> None:
    assert check_mask(3, None, asked()) == (None, "pass_through")
    with pytest.raises(TypeError, match="not an Arrow or numpy array"):
        check_mask(3, [True], asked())


def test_nobody_answers_nothing() -> None:
    assert (NOBODY.answer, NOBODY.plugin, NOBODY.steps) == (None, None, ())
    assert [step.answer for step in not_asked([("a", None), ("b", None)])] == ["not_asked"] * 2
