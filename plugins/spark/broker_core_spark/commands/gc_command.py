"""``broker-core spark gc``: remove old generations and what failed builds left."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from broker_core.quantities import counted, parse_duration
from broker_core_spark.commands.stop_signals import ended_by_signals
from broker_core_spark.commands.store_option import StoreOption, StoreOptions, chosen_store

__all__ = ["gc"]


def gc(
    *,
    keep: Annotated[
        int,
        typer.Option(
            "--keep", min=1, metavar="N", help="How many generations stay: the last ones published."
        ),
    ] = 3,
    grace: Annotated[
        str,
        typer.Option(
            "--grace",
            metavar="DURATION",
            help="Younger files stay: a build that began since may need them.",
        ),
    ] = "24h",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed.", show_default=False)
    ] = False,
    store: StoreOption = None,
    store_options: StoreOptions = None,
) -> None:
    """Remove old generations, and what failed and killed builds left behind.

    Nothing is removed while a build is under way. A build is dead if it gave no sign of life for ten minutes.
    """
    from broker_core_spark.store import collect_garbage

    try:
        longest = timedelta(seconds=parse_duration(grace))
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint="--grace") from None
    with ended_by_signals("spark gc"):
        done = collect_garbage(chosen_store(store, store_options), keep=keep, grace=longest, dry_run=dry_run)
    for file in done.removed:
        typer.echo(f"{file.size:>14,}  {file.path}")
    for fault in done.unreadable:
        typer.echo(
            f"a pointer cannot be read: {fault}. What it names is not known: while it counts among the last {keep} "
            "generations, all stay. Publish anew (broker-core spark use GENERATION, or a build), or remove this file: "
            "then the pointer before it counts",
            err=True,
        )
    what = "would be removed" if dry_run else "removed"
    size = sum(file.size for file in done.removed)
    kept = ", ".join(generation[:12] for generation in done.kept) or "none, as nothing is published there"
    typer.echo(
        f"{counted(len(done.removed), 'file')} of {counted(size, 'byte', spec=',')} {what}; "
        f"generations kept: {kept}"
    )
    if done.left:
        typer.echo(
            f"{counted(done.left, 'more file')} to be removed: the time of a gc was over, run it again",
            err=True,
        )
