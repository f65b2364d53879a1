"""`broker-core postgres migrate`: bring a database to the schema of this version."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Final

import asyncpg
import typer

from broker_core.cli.call import plugin_settings
from broker_core.cli.examples import examples
from broker_core_postgres.dsn import close, connect, target_of
from broker_core_postgres.failures import failed, server_words
from broker_core_postgres.migrate import Migrated, MigrationFailed, migrate

__all__ = ["EXAMPLES", "run"]

EXAMPLES: Final = examples(
    "broker-core postgres migrate --config broker.toml",
    "# what would be done, as another user than the one that reads",
    "broker-core postgres migrate --dsn postgresql://owner@db/topics --dry-run",
)


def run(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be applied, change nothing.", show_default=False)
    ] = False,
    dsn: Annotated[
        str | None,
        typer.Option(
            "--dsn",
            metavar="URL",
            help="The database, and a user who may create in it, instead of the one in the settings.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Bring the database to the newest schema, make the roles, and set what the settings say about its change log.

    Running it again changes nothing. Readers go on meanwhile.
    """
    settings = plugin_settings("postgres")
    target = target_of(settings, dsn if dsn is not None else settings.listen_dsn)

    async def migrate_it() -> Migrated:
        connection = await connect(target, application_name="broker-core migrate")
        try:
            return await migrate(
                connection,
                dry_run=dry_run,
                trigrams=settings.trigrams,
                retention=settings.change_log_retention,
                waiting=lambda: print("another migration is under way: waiting for it", file=sys.stderr),
            )
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise MigrationFailed(f"{failed(error).message}: {server_words(error)}") from error
        finally:
            await close(connection)

    done = asyncio.run(migrate_it())
    if dry_run:
        for name in done.applied:
            print(f"would apply {name}")
        if not done.applied:
            print(f"schema {done.version} is the newest: nothing to apply")
        return
    for name in done.applied:
        print(f"applied {name}")
    print(f"schema {done.version}, owned by {done.owner}" + ("" if done.applied else ": nothing to apply"))
    print(f"index of trigrams: {'none' if done.trigrams is None else 'yes'}")
    for name, reason in done.missing.items():
        print(f"missing: {name} ({reason.splitlines()[0]})", file=sys.stderr)
