from __future__ import annotations

from typing import Any

import pytest

from broker_core import Check


def test_a_check_has_a_level_a_name_and_a_text() -> None:
    assert Check.ok("files", "up to 9") == Check("ok", "files", "up to 9")
    assert Check.warning("a", "b").level == "warning"
    assert Check.error("a", "b").level == "error"


def test_another_level_is_refused() -> None:
    level: Any = "fatal"
    with pytest.raises(ValueError, match="ok, warning, error, not 'fatal'"):
        Check(level, "a", "b")
