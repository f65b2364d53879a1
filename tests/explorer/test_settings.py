from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker_core_explorer.settings import ExplorerSettings


def test_the_page_changes_nothing_unless_somebody_says_so() -> None:
    assert not ExplorerSettings().writes
    assert ExplorerSettings(writes=True).writes


def test_a_misspelt_key_is_an_error() -> None:
    with pytest.raises(ValidationError, match="write"):
        ExplorerSettings.model_validate({"write": True})
