"""Modes: how they are written, and which domains they list."""

from __future__ import annotations

import pytest

from broker_core.errors import InvalidName
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("persistent", Mode.PERSISTENT),
        ("PERSISTENT", Mode.PERSISTENT),
        ("non-persistent", Mode.NON_PERSISTENT),
        (" NON_PERSISTENT ", Mode.NON_PERSISTENT),
        ("All", Mode.ALL),
    ],
)
def test_modes_are_read_in_any_spelling(text: str, mode: Mode) -> None:
    assert Mode.parse(text) is mode


@pytest.mark.parametrize("text", ["", "both", "0", "persistent://"])
def test_what_is_no_mode_says_which_there_are(text: str) -> None:
    with pytest.raises(InvalidName, match="one of persistent, non-persistent, all"):
        Mode.parse(text)


def test_a_mode_lists_its_domains() -> None:
    assert [mode.lists(PERSISTENT) for mode in Mode] == [True, False, True]
    assert [mode.lists(NON_PERSISTENT) for mode in Mode] == [False, True, True]
    assert not any(mode.lists("topic") for mode in Mode)
    assert [mode.value for mode in Mode] == [0, 1, 2]
