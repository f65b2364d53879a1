"""The options of every command that may delete topics without naming them (:mod:`~.mass_deletion_guard`)."""

from __future__ import annotations

from typing import Annotated

import typer

from broker_core.cli.option_groups import option_group
from broker_core.guards import Deletions

__all__ = ["Deletions"]


def _deletions(
    max_deletions: Annotated[
        int | None,
        typer.Option(
            "--max-deletions",
            metavar="N",
            help="The most names that may be deleted; otherwise 100 or a tenth of all, and no large namespace whole.",
            min=0,
            show_default=False,
        ),
    ] = None,
    allow_mass_deletions: Annotated[
        bool,
        typer.Option("--allow-mass-deletions", help="Delete any number of names.", show_default=False),
    ] = False,
) -> Deletions:
    return Deletions(max_deletions, allow_mass_deletions)


option_group(Deletions, _deletions)
