"""The index of trigrams, with both extensions and with one of them."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core_postgres.schema.migration_lock import MigrationFailed
from broker_core_postgres.schema.run_migrations import migrate
from broker_core_postgres.schema.trigram_index import EXTENSIONS, make_trigram_index, read_trigram_index
from tests.support.postgres_server import Database


async def test_off_makes_none(empty_database: Database) -> None:
    async with empty_database.connected() as connection:
        assert (await migrate(connection, trigrams="off")).trigrams is None
        assert await read_trigram_index(connection) is None
        assert (await migrate(connection)).trigrams == "namespace"
        assert (await migrate(connection, trigrams="off")).trigrams == "namespace", "it is left where it is"


@pytest.mark.parametrize("extension", EXTENSIONS)
async def test_without_either_extension_there_is_none(connection: Any, extension: str) -> None:
    await connection.execute(f"DROP EXTENSION {extension} CASCADE")
    assert await read_trigram_index(connection) is None
    assert await make_trigram_index(connection) is None
    await connection.execute(f"CREATE EXTENSION {extension} SCHEMA public")
    assert await make_trigram_index(connection) == "namespace"
    assert await make_trigram_index(connection) == "namespace", "there is one already"


async def test_on_needs_both(empty_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "broker_core_postgres.schema.trigram_index.EXTENSIONS", ("pg_trgm", "no_such_extension")
    )
    monkeypatch.setattr(
        "broker_core_postgres.schema.run_migrations.EXTENSIONS", ("pg_trgm", "no_such_extension")
    )
    async with empty_database.connected() as connection:
        with pytest.raises(MigrationFailed, match="no_such_extension cannot be created"):
            await migrate(connection, trigrams="on")
        done = await migrate(connection)
        assert (done.trigrams, list(done.missing)) == (None, ["no_such_extension"])
