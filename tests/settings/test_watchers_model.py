"""[watchers]: bounds and defaults."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker_core.settings import Settings


def test_a_question_is_asked_again_twice_a_minute() -> None:
    assert Settings().watchers.enabled
    assert Settings().watchers.interval == 30.0
    assert Settings.model_validate({"watchers": {"interval": "5s"}}).watchers.interval == 5.0
    with pytest.raises(ValidationError):
        Settings.model_validate({"watchers": {"interval": 0}})
