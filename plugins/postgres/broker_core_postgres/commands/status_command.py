"""`broker-core postgres status`: show the state of a database."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Final

import typer

from broker_core.plugin_cli import examples, plugin_settings, print_json
from broker_core.quantities import counted
from broker_core_postgres.commands.shared_options import DsnOption
from broker_core_postgres.status import Status, ask_status

__all__ = ["EXAMPLES", "run"]

EXAMPLES: Final = examples(
    "broker-core postgres status --config broker.toml",
    "broker-core postgres status --json | jq '.namespaces[] | select(.topics == 0)'",
)


def run(
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object instead of a table.", show_default=False)
    ] = False,
    dsn: DsnOption = None,
) -> None:
    """Show the server, the schema, the roles, the change log, the mirrors and each namespace with its version.

    With a `relation` of your own: whether listings can be served from it, and nothing else.

    If listings cannot be served from the database, it says why, and the exit code is 1.
    """
    settings = plugin_settings("postgres")
    status = asyncio.run(ask_status(settings, dsn))
    if as_json:
        print_json(status.as_values())
    else:
        _show(status)
    if status.problem is not None:
        raise typer.Exit(1)


def _show(status: Status) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    kind = "replica" if status.replica else "read-only" if status.read_only else "primary"
    lines = [
        ("server", f"PostgreSQL {status.server}, {kind}"),
        ("database", f"{status.database}, as {status.user}"),
    ]
    if status.relation is not None:
        lines.append(("relation", f"{status.relation}: listings read it"))
        if status.problem is not None:
            lines.append(("problem", status.problem))
        for name, value in lines:
            print(f"{name:14} {value}")
        print(
            "\nIt is yours: schema, versions, change log and mirrors are of broker_core.topics, and do not concern it."
        )
        return
    lines += [
        ("schema", f"{status.schema} of {status.schema_needed}"),
        ("roles", ", ".join(status.roles_of_user) or "member of none"),
    ]
    if status.roles_missing:
        lines.append(("missing roles", ", ".join(status.roles_missing)))
    if status.backup is not None:
        lines.append(("backup", status.backup))
    if status.problem is not None:
        lines.append(("problem", status.problem))
    else:
        age = status.retention_seconds
        bounds = (
            f"{counted(status.retention_versions or 0, 'version')} and "
            f"{counted(status.retention_rows or 0, 'change')} of a namespace"
        )
        lines += [
            ("catalogue id", str(status.catalog_id)),
            ("trigrams", "no index" if status.trigrams is None else "an index"),
            (
                "change log",
                f"{'all ages' if age is None else counted(age / 86400, 'day', spec='g')}, at most {bounds}",
            ),
        ]
        lines += [
            ("mirror", f"{each.succeeded.isoformat(timespec='seconds')}, {each.scope} of {each.source}")
            for each in status.mirrors
        ] or [("mirror", "none has succeeded")]
    for name, value in lines:
        print(f"{name:14} {value}")
    if status.problem is not None:
        return
    print()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("namespace", overflow="fold")
    for column in ("version", "topics", "versions kept", "changes kept"):
        table.add_column(column, justify="right")
    table.add_column("changed")
    for each in status.namespaces:
        numbers = (each.version, each.topics, each.versions_kept, each.changes_kept)
        table.add_row(each.namespace, *(f"{number:,}" for number in numbers), each.changed)
    # Without a terminal the lines are not cut, for grep.
    Console(highlight=False, width=None if sys.stdout.isatty() else 250).print(table)
    print(counted(len(status.namespaces), "namespace"))
