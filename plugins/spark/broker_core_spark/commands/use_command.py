"""``broker-core spark use``: serve another generation."""

from __future__ import annotations

from typing import Annotated

import typer

from broker_core_spark.commands.stop_signals import ended_by_signals
from broker_core_spark.commands.store_option import StoreOption, StoreOptions, chosen_store

__all__ = ["use"]


def use(
    generation: Annotated[
        str,
        typer.Argument(
            metavar="GENERATION",
            help="The first digits of a generation, or - for the one that was served before.",
            show_default=False,
        ),
    ],
    *,
    store: StoreOption = None,
    store_options: StoreOptions = None,
) -> None:
    """Serve GENERATION from now on, as long as nothing newer is published: the way back to an older one.

    Brokers see it when they look next (plugins.spark.refresh), and check it wholly before they serve it.
    """
    from broker_core_spark.store import (
        PublishedPointer,
        previous_generation,
        read_pointers,
        use_generation,
    )

    chosen = chosen_store(store, store_options)
    before = next(read_pointers(chosen), None)
    with ended_by_signals("spark use"):
        published = use_generation(chosen, previous_generation(chosen) if generation == "-" else generation)
    if isinstance(before, PublishedPointer):
        was = f" (it was {before.generation[:12]})"
    else:
        was = "" if before is None else f" (the newest pointer could not be read: {before})"
    typer.echo(f"{published.generation[:12]} is served from now on{was}")
