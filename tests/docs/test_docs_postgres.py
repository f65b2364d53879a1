"""docs/reference/postgres.md is what the plugin is: settings, commands, metrics, reasons, the schema."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from broker_core.errors import ListingFailed
from broker_core_postgres.changes.listen_notify import CHANNEL
from broker_core_postgres.connect.failures import _CLASSES, _STATES, REASONS, DatabaseFailed, failure_of
from broker_core_postgres.connect.libpq.connection_options import KNOWN_OPTIONS
from broker_core_postgres.connect.libpq.connection_parameters import ConnectionParameters
from broker_core_postgres.schema.roles import ROLES
from broker_core_postgres.service import PostgresService
from broker_core_postgres.settings import PostgresSettings
from tests.docs.pages import all_pages, code_in, read, rows, tables
from tests.support.narrowed import present
from tests.support.postgres_server import Database, PostgresServer, run_apart

PAGE_NAMES = "reference/postgres.md"
#: Words with the prefix of metrics that are something else: packages, roles, the channel.
NO_METRICS = {"broker_core_postgres", *ROLES, CHANNEL}


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with PostgresServer() as server:
        yield server.create_database()


def query(database: Database, statement: str, *arguments: object) -> list[tuple[Any, ...]]:
    async def ask() -> list[tuple[Any, ...]]:
        async with database.connected() as connection:
            return [tuple(row) for row in await connection.fetch(statement, *arguments)]

    return run_apart(ask)


def test_the_options_of_a_connection_string_are_all_there() -> None:
    (text,) = re.findall(r"separated by commas\. Options:\n(.*?)\. An unknown", read(PAGE_NAMES), re.DOTALL)
    in_the_url = {"host", "port", "dbname", "database", "user", "password"}
    assert set(code_in(text)) == KNOWN_OPTIONS - in_the_url
    assert ConnectionParameters.parse("postgresql://a,b/c").session_attributes == "read-write"


# -- metrics and reasons


async def real_metrics() -> dict[str, tuple[str, set[str]]]:
    """Name to type and labels, of a plugin with everything on."""
    service = PostgresService(PostgresSettings(dsn="postgresql://a/b", replicas=("postgresql://c/b",)))
    service.metrics.queries.query("range", "listed", 0.1, 1)
    present(service.mirrors).last_success = 0.0  # as read of a database without a mirror
    found = {}
    for family in service.metrics.collect():
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        labels |= set(getattr(family, "_labelnames", ()))
        found[family.name + ("_total" if family.type == "counter" else "")] = (family.type, labels)
    service.lister.close()
    return found


async def test_every_metric_is_there_with_type_and_labels() -> None:
    documented = {
        code_in(name)[0]: (kind, set(code_in(labels)))
        for table in tables(PAGE_NAMES)
        if table.columns == ("metric", "type", "labels", "meaning")
        for name, kind, labels, _ in table.rows
    }
    assert documented == await real_metrics()


async def test_every_name_of_a_metric_in_the_pages_is_one() -> None:
    known = set(await real_metrics()) | NO_METRICS
    for page in all_pages():
        for name in re.findall(r"\bbroker_core_postgres_[a-z_]+[a-z]\b", read(page)):
            assert name in known or re.sub("_(bucket|count|sum)$", "", name) in known, f"{page}: {name}"


def test_every_reason_is_there_with_its_code() -> None:
    shown = {code_in(row["reason"])[0]: row for row in rows(PAGE_NAMES, "Reasons of failures", "reason")}
    assert set(shown) == REASONS
    codes = {
        meaning.reason: ListingFailed("x", cause=meaning.cause).code.name
        for meaning in (*_STATES.values(), *_CLASSES.values())
    }
    for reason in ("pool_full", "pool_timeout", "closed", "no_primary"):
        codes[reason] = DatabaseFailed.of(reason).code.name
    for error in (OSError(111, "refused"), TimeoutError(), ConnectionResetError()):
        failure = failure_of(error)
        codes[failure.reason] = failure.code.name
    for reason, code in codes.items():
        assert code_in(shown[reason]["the client gets"]) == [code], reason


# -- the schema


def test_every_table_is_there_with_its_columns(database: Database) -> None:
    real: dict[str, dict[str, str]] = {}
    for table, column, kind in query(
        database,
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'broker_core' ORDER BY ordinal_position",
    ):
        real.setdefault(table, {})[column] = kind
    documented = {
        code_in(table.heading)[0]: {code_in(row[0])[0]: code_in(row[1])[0] for row in table.rows}
        for table in tables(PAGE_NAMES)
        if table.columns == ("column", "type", "what it is") and table.heading.startswith("`")
    }
    # The table behind the view stands under it, with what it has besides.
    (behind,) = [
        {code_in(row[0])[0]: code_in(row[1])[0] for row in table.rows}
        for table in tables(PAGE_NAMES)
        if table.heading == "`namespaces`" and code_in(table.rows[0][0]) == ["transaction"]
    ]
    (view,) = [
        {code_in(row[0])[0]: code_in(row[1])[0] for row in table.rows}
        for table in tables(PAGE_NAMES)
        if table.heading == "`namespaces`" and code_in(table.rows[0][0]) == ["namespace"]
    ]
    documented |= {"namespaces": view, "namespace_versions": view | behind}
    assert documented == real


def test_every_function_that_is_called_is_there_with_who_may(database: Database) -> None:
    """Functions of extensions and of triggers are not there: nothing calls them."""
    real = {
        f"{name}({arguments})": "everybody" if everybody else "feeder" if feeder else "owner"
        for name, arguments, everybody, feeder in query(
            database,
            """SELECT p.proname::text, pg_get_function_identity_arguments(p.oid),
                has_function_privilege('public', p.oid, 'EXECUTE'),
                has_function_privilege('broker_core_feeder', p.oid, 'EXECUTE')
            FROM pg_proc p WHERE p.pronamespace = 'broker_core'::regnamespace
                AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')""",
        )
    }
    documented = {
        code_in(row["function"])[0]: row["who may"] for row in rows(PAGE_NAMES, "Functions", "function")
    }
    assert documented.items() <= real.items()
    for_feeders = {name for name, who in real.items() if who == "feeder"}
    assert for_feeders <= documented.keys()


def test_every_role_is_there() -> None:
    assert {code_in(row["role"])[0] for row in rows(PAGE_NAMES, "Roles", "role")} == set(ROLES)


def test_the_indexes_that_plans_name_exist(database: Database) -> None:
    real = {
        name
        for (name,) in query(database, "SELECT indexname FROM pg_indexes WHERE schemaname = 'broker_core'")
    }
    named = {name for row in rows(PAGE_NAMES, "What is answered", "plan") for name in code_in(row["index"])}
    assert named <= real


def test_the_notification_is_as_documented(database: Database) -> None:
    (payload,) = re.findall(r"The payload is JSON: `(.*?)`", read(PAGE_NAMES))
    assert f"The channel is `{CHANNEL}`" in read(PAGE_NAMES)

    async def heard() -> list[str]:
        connection = await database.connect()
        said: asyncio.Queue[str] = asyncio.Queue()
        try:
            await connection.add_listener(CHANNEL, lambda _c, _pid, _channel, text: said.put_nowait(text))
            await connection.execute(
                "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('public/default', 'a')"
            )
            return [await asyncio.wait_for(said.get(), 60)]
        finally:
            await connection.close()

    assert run_apart(heard) == [payload.replace("7", "1")]
