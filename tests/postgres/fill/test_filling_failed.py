from __future__ import annotations

from broker_core.errors import BrokerCoreError
from broker_core_postgres.fill.filling_failed import FillingFailed


def test_the_command_line_tells_it_in_one_line() -> None:
    assert isinstance(FillingFailed("why"), BrokerCoreError)
    assert str(FillingFailed("why")) == "why"
