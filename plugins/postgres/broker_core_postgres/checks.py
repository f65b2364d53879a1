"""The checks of ``broker-core check``: password files, the database, its schema and the replicas."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from broker_core import Check
from broker_core.errors import BrokerCoreError
from broker_core.quantities import counted
from broker_core_postgres.connect import connected, failure_text, parameters_of
from broker_core_postgres.listing import OwnRelation, RelationRefused, check_relation
from broker_core_postgres.schema import SchemaMismatch, SchemaTooOld, check_schema, may_migrate
from broker_core_postgres.settings import PostgresSettings

__all__ = ["check_database"]

_NAMESPACES = "SELECT count(*) FROM broker_core.namespaces"


async def check_database(settings: PostgresSettings) -> AsyncIterator[Check]:
    """All checks that need reading only: no migration, no writing statement."""
    problems = list(_of_passwords(settings))
    for problem in problems:
        yield problem
    if any(problem.level == "error" for problem in problems):
        return  # the database's errors would have the same cause
    yield await _connected(settings, "dsn", None, served=True)
    if settings.listen and settings.listen_dsn is not None:
        yield await _connected(settings, "listen_dsn", settings.listen_dsn)
    for number, replica in enumerate(settings.replicas, 1):
        found = await _connected(settings, f"replicas.{number}", replica)
        yield (
            found if found.level == "ok" else Check.warning(found.name, f"{found.text} (it is not read from)")
        )


def _of_passwords(settings: PostgresSettings) -> Iterator[Check]:
    if settings.password_file is not None:
        yield _of_file("password_file", settings.password_file)
    if settings.password_env is not None and settings.password_env not in os.environ:
        yield Check.error("password_env", f"the environment has no variable {settings.password_env}")
    if settings.service_file is not None and not settings.service_file.is_file():
        yield Check.error("service_file", f"there is no file {settings.service_file}")


def _of_file(name: str, path: Path) -> Check:
    if not path.is_file():
        return Check.error(name, f"there is no file {path}")
    if not os.access(path, os.R_OK):
        return Check.error(name, f"{path} cannot be read by this user")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        return Check.warning(name, f"others may read {path}: chmod 0600")
    return Check.ok(name, str(path))


async def _connected(
    settings: PostgresSettings, name: str, dsn: str | None, *, served: bool = False
) -> Check:
    """Check one database: whether it answers and, if ``served``, has what listings need."""
    try:
        parameters = parameters_of(settings, dsn)
        async with connected(
            parameters,
            application_name="broker-core check",
            failed=lambda error: BrokerCoreError(failure_text(error)),
            timeout=settings.connect_timeout,
        ) as connection:
            await connection.execute("SET default_transaction_read_only = on")
            place = f"{', '.join(map(str, parameters.hosts))}, database {parameters.database!r}"
            try:
                state = f": {await _served(connection, settings)}" if served else " answers"
            except SchemaTooOld as old:
                if not settings.auto_migrate or not await may_migrate(connection):
                    raise
                return Check.warning(
                    "schema", f"{old}, or start a server: it migrates the database by itself (auto_migrate)"
                )
    except (SchemaMismatch, RelationRefused) as error:
        return Check.error("schema", str(error))
    except BrokerCoreError as error:
        return Check.error(name, str(error))
    return Check.ok(name, f"{place}{state}")


async def _served(connection: Any, settings: PostgresSettings) -> str:
    if settings.relation is not None:
        relation = OwnRelation.parse(settings.relation)
        await check_relation(connection, relation, properties=bool(settings.property_keys))
        return f"relation {settings.relation} can be read"
    schema = await check_schema(connection, reader=True)
    namespaces = await connection.fetchval(_NAMESPACES)
    return f"schema {schema}, {counted(namespaces, 'namespace')}"
