"""The privileges of each role, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from tests.support.postgres_server import Database


@pytest.fixture
async def as_role(database: Database) -> AsyncIterator[Any]:
    """Connects as a user with one role alone."""
    opened = []

    async def connect(role: str) -> Any:
        user = f"{database.name}_{role}"
        database.sql(f"CREATE ROLE {user} LOGIN IN ROLE broker_core_{role}")
        connection = await database.connect(user)
        opened.append((user, connection))
        return connection

    yield connect
    for user, connection in opened:
        await connection.close()
        database.sql(f"DROP OWNED BY {user} CASCADE; DROP ROLE {user}")


async def test_a_reader_reads_and_writes_nothing(database: Database, as_role: Any) -> None:
    database.sql("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'x')")
    reader = await as_role("reader")
    for relation in (
        "topics",
        "namespaces",
        "namespace_versions",
        "changes",
        "catalog",
        "migrations",
        "tombstones",
    ):
        await reader.fetch(f"SELECT * FROM broker_core.{relation}")
    for statement in (
        "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'y')",
        "UPDATE broker_core.topics SET properties = '{}'",
        "DELETE FROM broker_core.topics",
        "TRUNCATE broker_core.topics",
        "SELECT broker_core.begin_change('a/b')",
        "SELECT broker_core.forget_namespace('a/b')",
        "SELECT broker_core.prune_changes('0 s')",
        "CREATE TABLE broker_core.mine (i int)",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await reader.execute(statement)


async def test_a_feeder_writes_topics_alone(database: Database, as_role: Any) -> None:
    feeder = await as_role("feeder")
    await feeder.execute(
        "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'x'), ('a/b', 'y')"
    )
    await feeder.execute("UPDATE broker_core.topics SET properties = '{\"k\": \"v\"}' WHERE local_name = 'x'")
    await feeder.execute("DELETE FROM broker_core.topics WHERE local_name = 'y'")
    await feeder.execute(
        "INSERT INTO broker_core.topics (namespace, local_name, created_version, changed_version, topic_id)"
        " VALUES ('a/b', 'liar', 50, 50, gen_random_uuid())"
    )
    assert (
        await feeder.fetchval("SELECT created_version FROM broker_core.topics WHERE local_name = 'liar'") == 4
    )
    await feeder.execute("SELECT broker_core.declare_namespace('c/d')")
    await feeder.execute("SELECT broker_core.sort_pending()")
    await feeder.execute("SELECT broker_core.tidy_topics()")
    await feeder.execute("SELECT broker_core.prune_changes()")
    await feeder.execute("SELECT broker_core.forget_namespace('c/d')")
    await feeder.execute("TRUNCATE broker_core.topics")
    assert await feeder.fetchval("SELECT version FROM broker_core.namespaces WHERE namespace = 'a/b'") == 5


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE broker_core.namespace_versions SET version = 100",
        "UPDATE broker_core.namespaces SET version = 100",
        "INSERT INTO broker_core.namespaces (namespace, version, topics) VALUES ('x/y', 9, 9)",
        "DELETE FROM broker_core.changes",
        "UPDATE broker_core.catalog SET id = gen_random_uuid()",
        "INSERT INTO broker_core.mending VALUES (pg_current_xact_id())",
        "SELECT broker_core.raise_versions(ARRAY['a/b'], ARRAY[5], ARRAY[0])",
        "SELECT broker_core.mend_topics('{persistent}', '{x}', '{a/b}', NULL, '{9}', '{9}')",
        "SELECT broker_core.trim_changes('a/b', 9, 0, 0, NULL)",
        "SELECT broker_core.set_retention(rows => 0)",
        "SELECT broker_core.renew_catalog_id()",
        "ALTER TABLE broker_core.topics DISABLE TRIGGER after_insert",
        "DROP TABLE broker_core.topics",
        "CREATE TEMP TABLE m (i int); CREATE TRIGGER t AFTER INSERT ON m EXECUTE FUNCTION broker_core.after_insert()",
    ],
)
async def test_a_feeder_cannot_forge(database: Database, as_role: Any, statement: str) -> None:
    database.sql("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'x')")
    feeder = await as_role("feeder")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await feeder.execute(statement)


async def test_a_search_path_leads_no_trigger_astray(database: Database, as_role: Any) -> None:
    feeder = await as_role("feeder")
    database.sql(f"GRANT CREATE ON DATABASE {database.name} TO {database.name}_feeder")
    await feeder.execute(
        "CREATE SCHEMA evil; CREATE FUNCTION evil.transaction_timestamp() RETURNS timestamptz LANGUAGE sql AS"
        " 'SELECT ''2000-01-01''::timestamptz'; CREATE FUNCTION evil.array_agg(text) RETURNS text[] LANGUAGE sql AS"
        " 'SELECT NULL::text[]'; SET search_path = evil, pg_catalog"
    )
    await feeder.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'x')")
    await feeder.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'y')")
    query = "SELECT version FROM broker_core.namespaces WHERE changed > '2001-01-01'::timestamptz"
    assert await feeder.fetchval(query) == 2


async def test_everything_belongs_to_the_migrator(connection: Any) -> None:
    owners = await connection.fetch(
        "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = 'broker_core'::regnamespace"
        " UNION SELECT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'broker_core'::regnamespace"
        " AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')"
    )
    assert [row[0] for row in owners] == ["broker_core_migrator"]


async def test_definers_pin_their_search_path(connection: Any) -> None:
    loose = await connection.fetch(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'broker_core'::regnamespace AND prosecdef"
        " AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)"
    )
    assert loose == []
