"""Session settings at a real server: read-only, time limits, and nothing left in the session behind a pooler."""

from __future__ import annotations

import asyncpg
import pytest

from broker_core_postgres.connect.session_settings import SessionSettings
from broker_core_postgres.settings import PostgresSettings
from tests.support.postgres_server import PostgresServer


async def test_a_session_is_read_only_and_bounded(postgres_server: PostgresServer) -> None:
    session = SessionSettings(
        PostgresSettings(statement_timeout=1.5),
        server_settings={"work_mem": "5MB", "search_path": "it's \\ mine"},
    )
    connection = await asyncpg.connect(postgres_server.dsn())
    await connection.execute(session.setup_sql)
    assert await connection.fetchval("SHOW statement_timeout") == "1500ms"
    assert await connection.fetchval("SHOW lock_timeout") == "1350ms"
    assert await connection.fetchval("SHOW work_mem") == "5MB"
    assert await connection.fetchval("SHOW search_path") == '"it\'s \\ mine"'
    with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
        await connection.execute("CREATE TABLE never (a int)")
    assert session.begin_sql(snapshot=False) == ""
    await connection.execute(session.begin_sql(snapshot=True))
    assert await connection.fetchval("SHOW transaction_isolation") == "repeatable read"
    await connection.close()


@pytest.mark.parametrize(("one_plan", "mode"), [(False, "auto"), (True, "force_generic_plan")])
async def test_one_plan_for_all_but_what_a_snapshot_is_kept_for(
    postgres_server: PostgresServer, one_plan: bool, mode: str
) -> None:
    session = SessionSettings(PostgresSettings(), one_plan=one_plan)
    connection = await asyncpg.connect(postgres_server.dsn())
    await connection.execute(session.setup_sql)
    assert await connection.fetchval("SHOW plan_cache_mode") == mode
    await connection.execute(session.begin_sql(snapshot=True))
    assert await connection.fetchval("SHOW plan_cache_mode") == "force_custom_plan"
    await connection.execute("COMMIT")
    assert await connection.fetchval("SHOW plan_cache_mode") == mode
    await connection.close()


@pytest.mark.parametrize("snapshot", [False, True], ids=["plain", "snapshot"])
async def test_behind_a_pooler_a_transaction_brings_everything(
    postgres_server: PostgresServer, snapshot: bool
) -> None:
    session = SessionSettings(
        PostgresSettings(statement_timeout=1.5, prepared_statements="off"),
        server_settings={"work_mem": "5MB"},
    )
    assert (session.setup_sql, session.statement_cache_size) == ("", 0)
    connection = await asyncpg.connect(postgres_server.dsn())
    before = await connection.fetchval("SHOW work_mem")
    await connection.execute(session.begin_sql(snapshot=snapshot))
    assert await connection.fetchval("SHOW statement_timeout") == "1500ms"
    assert await connection.fetchval("SHOW work_mem") == "5MB"
    assert await connection.fetchval("SHOW transaction_read_only") == "on"
    await connection.execute("COMMIT")
    assert await connection.fetchval("SHOW statement_timeout") == "0"
    assert await connection.fetchval("SHOW work_mem") == before
    await connection.close()


@pytest.mark.parametrize("prepared", [False, True])
async def test_a_snapshot_is_taken_behind_the_lock(postgres_server: PostgresServer, prepared: bool) -> None:
    session = SessionSettings(PostgresSettings(prepared_statements="on" if prepared else "off"))
    connection = await asyncpg.connect(postgres_server.dsn())
    await connection.execute(session.begin_sql(snapshot=True, lock="pg_catalog.pg_authid"))
    state = (
        "SELECT count(*), bool_or(granted) FROM pg_locks WHERE relation = 'pg_authid'::regclass AND mode = $1"
    )
    assert tuple(await connection.fetchrow(state, "AccessShareLock")) == (1, True)
    await connection.execute("COMMIT")
    assert "LOCK" not in session.begin_sql(snapshot=False, lock="x") + session.begin_sql(snapshot=True)
    await connection.close()


async def test_statements_by_themselves_are_of_the_time_after_their_locks(
    postgres_server: PostgresServer,
) -> None:
    options = "-c default_transaction_isolation=serializable"
    for session in (
        SessionSettings(PostgresSettings()),
        SessionSettings(PostgresSettings(prepared_statements="off")),
    ):
        connection = await asyncpg.connect(postgres_server.dsn(), server_settings={"options": options})
        await connection.execute(session.setup_sql + session.begin_sql(snapshot=False))
        assert await connection.fetchval("SHOW transaction_isolation") == "read committed"
        await connection.close()


def test_the_shortest_time_is_not_none() -> None:
    assert "statement_timeout = E'1'" in SessionSettings(PostgresSettings(statement_timeout=0.0001)).setup_sql


@pytest.mark.parametrize("name", ["work_mem; DROP TABLE x", "", "a.b.c", "Work"])
def test_what_is_no_setting_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a setting of PostgreSQL"):
        SessionSettings(PostgresSettings(), server_settings={name: "1"})
