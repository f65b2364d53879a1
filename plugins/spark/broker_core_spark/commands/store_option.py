"""The option ``--store`` of commands, and the store of the settings."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import plugin_settings
from broker_core_spark.store import Store, open_store

__all__ = ["StoreOption", "chosen_store"]

StoreOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URI",
        help="Where the generations are. Without it plugins.spark.store of the settings.",
        show_default=False,
    ),
]


def chosen_store(uri: str | None) -> Store:
    """The store at ``uri``, or that of the settings. Raises :exc:`BrokerCoreError` if neither names one."""
    if uri is not None:
        return open_store(uri)
    try:
        settings = plugin_settings("spark")
    except BrokerCoreError as error:
        raise BrokerCoreError(f"no --store, and the settings name none: {error}") from error
    return open_store(settings.store, settings.store_options)
