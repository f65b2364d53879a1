"""Options of several commands: the database, a dry run, JSON."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["DryRunOption", "DsnOption", "JsonOption", "WriteDsnOption"]

DsnOption = Annotated[
    str | None,
    typer.Option(
        "--dsn", metavar="URL", help="The database, instead of the one in the settings.", show_default=False
    ),
]
WriteDsnOption = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        metavar="URL",
        help="The database to write, instead of the one in the settings.",
        show_default=False,
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Change nothing, say what would change.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", show_default=False)]
