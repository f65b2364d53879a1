"""The database's roles, and the role that owns the schema."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import asyncpg

from broker_core_postgres.schema.migration_lock import MigrationFailed

__all__ = ["ROLES", "check_owner", "create_roles", "schema_owner", "set_role_privilege"]

#: Roles for reading, filling and migrating. None can log in: users become their members.
ROLES: Final = ("broker_core_reader", "broker_core_feeder", "broker_core_migrator")

_OWNER: Final = "SELECT nspowner::regrole::text FROM pg_catalog.pg_namespace WHERE nspname = 'broker_core'"


def set_role_privilege(connection: Any) -> str:
    """The privilege of SET ROLE as ``pg_has_role`` names it. From PostgreSQL 16 on, a member may lack it."""
    return "SET" if connection.get_server_version().major >= 16 else "MEMBER"


async def create_roles(connection: Any) -> dict[str, str]:
    """Create the roles, if this user may. Returns the missing ones, each with the reason.

    Without the roles everything works for the owner alone.
    """
    missing = {}
    for role in ROLES:
        if await connection.fetchval("SELECT to_regrole($1)::oid", role) is not None:
            continue
        try:
            async with connection.transaction():
                await connection.execute(f"CREATE ROLE {role} NOLOGIN")
        except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
            continue  # another database of this server was migrated at the same time
        except asyncpg.InsufficientPrivilegeError as error:
            missing[role] = str(error)
    if await connection.fetchval("SELECT to_regrole('broker_core_migrator')::oid") is None:
        return missing
    if not await connection.fetchval(
        "SELECT pg_has_role('broker_core_migrator', $1)", set_role_privilege(connection)
    ):
        # If refused, the schema will be the user's own.
        with contextlib.suppress(asyncpg.PostgresError):
            async with connection.transaction():
                await connection.execute("GRANT broker_core_migrator TO CURRENT_USER")
    return missing


async def schema_owner(connection: Any) -> str | None:
    """The owner of the schema, quoted; ``None`` without a schema."""
    owner: str | None = await connection.fetchval(_OWNER)
    return owner


async def check_owner(connection: Any) -> None:
    """Raise :exc:`MigrationFailed` unless the user is the owner of the schema, or may become it by SET ROLE."""
    owner = await schema_owner(connection)
    if owner is not None and not await connection.fetchval(
        "SELECT pg_has_role($1::regrole, $2)", owner, set_role_privilege(connection)
    ):
        raise MigrationFailed(
            f"The schema broker_core belongs to {owner}: migrate as a member of that role (GRANT {owner} TO ...)"
        )
