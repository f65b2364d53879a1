"""Tables of settings refuse unknown keys and do not change; a conflict names its setting."""

from __future__ import annotations

import pytest
from pydantic import ValidationError, model_validator

from broker_core.settings.problems import findings
from broker_core.settings.table import SettingConflict, Table


class Numbers(Table):
    """``[numbers]``."""

    one: int = "1"  # type: ignore[assignment] # understood as if it were written in a file
    other: int = 0

    @model_validator(mode="after")
    def _go_together(self) -> Numbers:
        if self.one > 1 and self.other:
            raise SettingConflict(("other",), "one is set too")
        return self


class Outer(Table):
    """``[outer]``, with a table in it."""

    numbers: Numbers = Numbers()


def test_an_unknown_key_is_an_error() -> None:
    with pytest.raises(ValidationError, match="two"):
        Numbers.model_validate({"two": 2})


def test_a_default_is_read_as_what_is_written() -> None:
    assert Numbers().one == 1


def test_a_table_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Numbers().one = 2


def test_a_conflict_names_its_setting() -> None:
    with pytest.raises(ValidationError) as refused:
        Outer.model_validate({"numbers": {"one": 2, "other": 1}})
    (finding,) = findings(refused.value)
    assert finding.path == ("numbers", "other")
    assert finding.rests_on == (("numbers",),)
    assert str(finding.detail["ctx"]["error"]) == "one is set too"
