"""`broker-core postgres migrate`: bring a database to the schema of this version."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Final

import typer

from broker_core.plugin_cli import examples, plugin_settings
from broker_core_postgres.connect import connected, failure_text, parameters_of
from broker_core_postgres.schema import (
    MigratedBack,
    MigrationFailed,
    MigrationResult,
    how_to_go_back,
    migrate,
    migrate_back,
)

__all__ = ["EXAMPLES", "run"]

EXAMPLES: Final = examples(
    "broker-core postgres migrate --config broker.toml",
    "# what would be done, as another user than the one that reads",
    "broker-core postgres migrate --dsn postgresql://owner@db/topics --dry-run",
    "# the schema and the rows that were there before the last migration; stop all servers first",
    "broker-core postgres migrate --back",
)


def run(
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be applied, change nothing.", show_default=False)
    ] = False,
    back: Annotated[
        bool,
        typer.Option(
            "--back",
            help="Go back to the schema and the rows of the backup that the last migration made.",
            show_default=False,
        ),
    ] = False,
    no_backup: Annotated[
        bool,
        typer.Option(
            "--no-backup",
            help="Keep no copy of the rows in the database: there is no way back but your own backup.",
            show_default=False,
        ),
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

    Before a schema is changed, all rows are copied into a schema of their own, which `--back` takes them from. Running
    it again changes nothing. Readers go on meanwhile.
    """
    if back and no_backup:
        raise typer.BadParameter(
            "--back always keeps a copy of the schema that it leaves", param_hint="--no-backup"
        )
    settings = plugin_settings("postgres")
    parameters = parameters_of(settings, dsn if dsn is not None else settings.listen_dsn)

    def waiting() -> None:
        print("another migration is under way: waiting for it", file=sys.stderr)

    async def migrate_it() -> MigrationResult | MigratedBack:
        async with connected(
            parameters,
            application_name="broker-core migrate",
            failed=lambda error: MigrationFailed(failure_text(error)),
        ) as connection:
            if back:
                return await migrate_back(connection, dry_run=dry_run, waiting=waiting)
            return await migrate(
                connection,
                dry_run=dry_run,
                trigrams=settings.trigrams,
                retention=settings.change_log_retention,
                backup=not no_backup,
                waiting=waiting,
            )

    done = asyncio.run(migrate_it())
    if isinstance(done, MigratedBack):
        _say_back(done)
    else:
        _say_forward(done, dry_run=dry_run)


def _say_back(done: MigratedBack) -> None:
    if done.kept is None:
        print(
            f"would go back from schema {done.left} to the rows of {done.used.schema} ({done.used.description})"
        )
        return
    print(f"schema {done.version}, with the rows of {done.used.description}")
    print(
        f"what was written since is in {done.kept.schema}; this version's servers would migrate forward again: start "
        "the older one's"
    )


def _say_forward(done: MigrationResult, *, dry_run: bool) -> None:
    if dry_run:
        for name in done.applied:
            print(f"would apply {name}")
        if not done.applied:
            print(f"schema {done.version} is the newest: nothing to apply")
        return
    for name in done.applied:
        print(f"applied {name}")
    if done.backup is not None:
        print(how_to_go_back(done))
    print(f"schema {done.version}, owned by {done.owner}" + ("" if done.applied else ": nothing to apply"))
    print(f"index of trigrams: {'none' if done.trigrams is None else 'yes'}")
    for name, reason in done.missing.items():
        print(f"missing: {name} ({reason.splitlines()[0]})", file=sys.stderr)
