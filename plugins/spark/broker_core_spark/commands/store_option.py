"""The options ``--store`` and ``--store-option`` of commands, and the store of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import plugin_settings

if TYPE_CHECKING:
    from broker_core_spark.store import Store

__all__ = ["StoreOption", "StoreOptions", "chosen_options", "chosen_store", "parse_pairs"]

StoreOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URI",
        help="Where the generations are. Without it plugins.spark.store of the settings.",
        show_default=False,
    ),
]
StoreOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--store-option",
        metavar="KEY=VALUE",
        help="An option of the bucket: endpoint, region, allow_http ...; may be repeated. Before those of "
        "plugins.spark.store_options. No secrets: these come from the environment.",
        show_default=False,
    ),
]


def chosen_store(uri: str | None, given: list[str] | None = None) -> Store:
    """The store at ``uri``, or that of the settings, once it has answered.

    Raises :exc:`BrokerCoreError` if neither names one, and :exc:`~broker_core_spark.errors.StoreFailed` if it does not
    answer.
    """
    from broker_core_spark.store import check_reached, open_store

    if uri is None:
        try:
            uri = plugin_settings("spark").store
        except BrokerCoreError as error:
            raise BrokerCoreError(f"no --store, and the settings name none: {error}") from error
    store = open_store(uri, chosen_options(uri, given))
    check_reached(store)
    return store


def chosen_options(uri: str, given: list[str] | None) -> dict[str, str]:
    """The options of the bucket at ``uri``: ``plugins.spark.store_options``, and over them the given ones.

    Options of the settings are for buckets of the same kind as ``plugins.spark.store``.
    """
    pairs = parse_pairs("--store-option", given)
    if "://" not in uri:
        return pairs
    try:
        settings = plugin_settings("spark")
    except BrokerCoreError:  # these settings have no table of the plugin
        return pairs
    if settings.store.partition("://")[0] != uri.partition("://")[0]:
        return pairs
    return {**settings.store_options, **pairs}


def parse_pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """The pairs of an option ``KEY=VALUE``. Raises :exc:`typer.BadParameter`."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise typer.BadParameter(f"{text!r}: expected KEY=VALUE", param_hint=option)
        pairs[key] = value
    return pairs
