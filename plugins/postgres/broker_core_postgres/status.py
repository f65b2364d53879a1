"""The state of a database for operators, as ``broker-core postgres status`` shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from broker_core.errors import BrokerCoreError
from broker_core_postgres.connect import connected, failure_text, parameters_of
from broker_core_postgres.listing import OwnRelation, RelationRefused, check_relation
from broker_core_postgres.mirror_success import MirrorSuccess, read_successes
from broker_core_postgres.schema import (
    ROLES,
    SchemaMismatch,
    check_applied,
    find_backup,
    migrations,
    read_applied,
    read_trigram_index,
)
from broker_core_postgres.settings import PostgresSettings

__all__ = ["NamespaceStatus", "Status", "StatusUnknown", "ask_status", "read_status"]

_SERVER: Final = """SELECT current_setting('server_version'), pg_is_in_recovery(), current_user::text,
    current_database()::text, current_setting('default_transaction_read_only') = 'on'"""
_ROLES: Final = """SELECT given.role, to_regrole(given.role) IS NOT NULL,
        to_regrole(given.role) IS NOT NULL AND pg_has_role(to_regrole(given.role), 'MEMBER')
    FROM unnest($1::text[]) given (role)"""
_CATALOG: Final = """SELECT c.id::text, extract(epoch FROM r.age)::float8, r.versions, r.rows
    FROM broker_core.catalog c, broker_core.retention r"""
_NAMESPACES: Final = """SELECT namespace, version, topics, version - log_floor, log_rows, changed
    FROM broker_core.namespaces ORDER BY namespace"""


class StatusUnknown(BrokerCoreError):
    """The database did not answer."""


@dataclass(frozen=True, slots=True)
class NamespaceStatus:
    """A namespace: its version, its listed names, and the versions and approximate changes that the log keeps."""

    namespace: str
    version: int
    topics: int
    versions_kept: int
    changes_kept: int
    changed: str


@dataclass(slots=True)
class Status:
    """The state. ``problem`` says why listings cannot be served; the fields after ``schema`` are empty then.

    They are also empty for a ``relation`` of the operator's own, which they do not concern.
    """

    server: str
    database: str
    user: str
    replica: bool
    read_only: bool
    schema: int
    schema_needed: int
    relation: str | None = None
    problem: str | None = None
    roles_missing: list[str] = field(default_factory=list)
    roles_of_user: list[str] = field(default_factory=list)
    backup: str | None = None
    catalog_id: str | None = None
    trigrams: str | None = None
    retention_seconds: float | None = None
    retention_versions: int | None = None
    retention_rows: int | None = None
    mirrors: list[MirrorSuccess] = field(default_factory=list)
    namespaces: list[NamespaceStatus] = field(default_factory=list)

    def as_values(self) -> dict[str, Any]:
        """The status as values of JSON; moments are texts."""
        mirrors = [
            asdict(each) | {"succeeded": each.succeeded.isoformat(timespec="seconds")}
            for each in self.mirrors
        ]
        return asdict(self) | {"mirrors": mirrors}


async def ask_status(
    settings: PostgresSettings,
    dsn: str | None = None,
    *,
    application: str = "broker-core status",
    namespaces: bool = True,
) -> Status:
    """The state of the database of the settings, or of ``dsn``, by a connection of its own; if wished, with namespaces.

    Raises :exc:`StatusUnknown` and the errors of connecting.
    """
    relation = None if settings.relation is None else OwnRelation.parse(settings.relation)
    async with connected(
        parameters_of(settings, dsn),
        application_name=application,
        failed=lambda error: StatusUnknown(failure_text(error)),
    ) as connection:
        return await read_status(
            connection, relation, properties=bool(settings.property_keys), namespaces=namespaces
        )


async def read_status(
    connection: Any,
    relation: OwnRelation | None = None,
    *,
    properties: bool = False,
    namespaces: bool = True,
) -> Status:
    """Read the state of a connection's database, from one snapshot.

    With a ``relation``: whether listings can be read from it, with ``properties`` also by properties.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        version, replica, user, database, read_only = await connection.fetchrow(_SERVER)
        status = Status(version, database, user, replica, read_only, 0, migrations()[-1].number)
        for role, there, member in await connection.fetch(_ROLES, list(ROLES)):
            if not there:
                status.roles_missing.append(role)
            elif member:
                status.roles_of_user.append(role)
    if relation is not None:
        status.relation = str(relation)
        try:
            await check_relation(connection, relation, properties=properties)
        except RelationRefused as error:
            status.problem = str(error)
        return status
    backup = await find_backup(connection)
    status.backup = None if backup is None else f"{backup.schema}: {backup.description}"
    try:
        applied = await read_applied(connection)
        status.schema = applied[-1].number if applied else 0
        check_applied(applied, reader=True)
    except SchemaMismatch as error:
        status.problem = str(error)
        return status
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        (
            status.catalog_id,
            status.retention_seconds,
            status.retention_versions,
            status.retention_rows,
        ) = await connection.fetchrow(_CATALOG)
        status.trigrams = await read_trigram_index(connection)
        status.mirrors = await read_successes(connection)
        if namespaces:
            status.namespaces = [
                NamespaceStatus(
                    name, number, topics, versions, changes, changed.isoformat(timespec="seconds")
                )
                for name, number, topics, versions, changes, changed in await connection.fetch(_NAMESPACES)
            ]
    return status
