"""The servers that each value of ``target_session_attrs`` accepts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_core_postgres.connect.libpq.target_session_attrs import (
    satisfies_attributes,
)
from broker_core_postgres.connect.open_connection import CannotConnect, connect
from tests.support.eventually import eventually
from tests.support.postgres_server import PostgresServer


async def test_a_read_only_host_is_left(postgres_server: PostgresServer) -> None:
    database = postgres_server.create_database(migrated=False)
    database.sql(f'ALTER DATABASE "{database.name}" SET default_transaction_read_only = on')
    here = f"127.0.0.1:{postgres_server.port}"
    with pytest.raises(CannotConnect, match="is not read-write") as refused:
        await connect(f"postgresql://postgres@{here},localhost:{postgres_server.port}/{database.name}")
    assert refused.value.failure.reason == "no_primary"
    for attributes in ("any", "read-only", "primary", "prefer-standby"):
        connection = await connect(
            f"postgresql://postgres@{here}/{database.name}?target_session_attrs={attributes}"
        )
        assert await satisfies_attributes(connection, "read-only")
        await connection.close()
    with pytest.raises(CannotConnect, match="is not standby"):
        await connect(f"postgresql://postgres@{here}/postgres?target_session_attrs=standby")
    postgres_server.drop_database(database.name)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


async def test_a_session_in_use_hears_of_a_server_that_became_read_only(own_server: PostgresServer) -> None:
    connection = await connect(own_server.dsn())
    await connection.execute(
        "SET default_transaction_read_only = on"
    )  # set by the session itself, which does not count
    assert await satisfies_attributes(connection, "read-write", in_use=True)
    own_server.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    own_server.sql("SELECT pg_reload_conf()")

    async def left() -> bool:
        return not await satisfies_attributes(connection, "read-write", in_use=True)

    try:
        await eventually(left, 60)
    finally:
        own_server.sql("ALTER SYSTEM RESET default_transaction_read_only")
        own_server.sql("SELECT pg_reload_conf()")
        await connection.close()
