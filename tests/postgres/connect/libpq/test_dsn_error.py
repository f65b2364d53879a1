"""The error of connection strings and of passwords."""

from __future__ import annotations

from broker_core.errors import BrokerCoreError
from broker_core_postgres.connect.libpq.dsn_error import DsnError


def test_it_is_one_line_for_commands() -> None:
    assert isinstance(DsnError("password_file: cannot read it"), BrokerCoreError)
