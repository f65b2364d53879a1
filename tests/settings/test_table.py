from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker_core.settings.table import Table


class Numbers(Table):
    """``[numbers]``."""

    one: int = "1"  # type: ignore[assignment] # understood as if it were written in a file


def test_an_unknown_key_is_an_error() -> None:
    with pytest.raises(ValidationError, match="two"):
        Numbers.model_validate({"two": 2})


def test_a_default_is_read_as_what_is_written() -> None:
    assert Numbers().one == 1


def test_a_table_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Numbers().one = 2
