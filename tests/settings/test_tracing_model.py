"""``[tracing]``: the address of the collector, and the share of listings."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker_core.settings import Settings, TracingSettings


def test_there_is_none_without_the_table() -> None:
    assert Settings().tracing is None
    tracing = Settings.model_validate({"tracing": {"endpoint": ""}}).tracing
    assert tracing == TracingSettings(endpoint="", sample=1.0)


def test_an_address_has_no_slash_at_its_end() -> None:
    assert TracingSettings(endpoint="http://127.0.0.1:4318/").endpoint == "http://127.0.0.1:4318"


@pytest.mark.parametrize(
    "table", [{}, {"endpoint": "x:4318"}, {"endpoint": "", "sample": 1.5}, {"endpoint": "", "sample": -1}]
)
def test_what_is_wrong_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"tracing": table})
