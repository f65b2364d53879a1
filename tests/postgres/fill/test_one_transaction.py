"""A transaction that a dry run rolls back, and an error too."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core_postgres.fill.one_transaction import one_transaction

_INSERT = "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', $1)"


async def names(connection: Any) -> list[str]:
    return [
        name for (name,) in await connection.fetch("SELECT local_name FROM broker_core.topics ORDER BY 1")
    ]


async def test_only_a_real_run_without_an_error_changes_the_database(connection: Any) -> None:
    async with one_transaction(connection, dry_run=True):
        await connection.execute(_INSERT, "dry")
        assert await names(connection) == ["dry"]
    with pytest.raises(LookupError):
        async with one_transaction(connection, dry_run=False):
            await connection.execute(_INSERT, "wrong")
            raise LookupError
    async with one_transaction(connection, dry_run=False):
        await connection.execute(_INSERT, "real")
    assert await names(connection) == ["real"]


async def test_the_first_error_counts_if_the_connection_is_gone(connection: Any) -> None:
    with pytest.raises(LookupError):
        async with one_transaction(connection, dry_run=False):
            connection.terminate()
            raise LookupError
