"""The settings of ``broker-core spark build``: those of the broker, and over them the options that are given."""

from __future__ import annotations

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import broker_settings, plugin_settings, say
from broker_core_spark.settings import SparkSettings

__all__ = ["build_settings", "property_keys"]


def build_settings(**options: float | str | None) -> SparkSettings:
    """The settings of a build: ``[plugins.spark]`` of ``--config``, else the defaults; over them ``options`` by the
    names of settings, if they are not ``None``.
    """
    found: SparkSettings = plugin_settings("spark", optional=True) or SparkSettings(store="-")
    return found.model_copy(update={name: value for name, value in options.items() if value is not None})


def property_keys(given: list[str] | None) -> tuple[str, ...] | None:
    """The properties that select topics: the ``given`` ones, each text one or several of them.

    Without any, those that a broker selects by: ``[catalog] property_keys`` and those of its plugins; ``None`` for
    none: then questions with properties ask for the option.
    """
    if given is not None:
        return tuple(key.strip() for text in given for key in text.split(",") if key.strip())
    settings = broker_settings()
    try:
        plugins = settings.plugin_property_keys()
    except BrokerCoreError as error:
        raise typer.BadParameter(
            f"without it what counts is which properties select, and {error}", param_hint="--property-keys"
        ) from error
    own = settings.property_keys
    if own and plugins and own != plugins:
        say(
            f"spark build: catalog.property_keys ({', '.join(sorted(own))}) and those of the plugins "
            f"({', '.join(sorted(plugins))}) differ: topics of one are not selected by the keys of the other alone, "
            "but in the generation they are; make both equal"
        )
    return tuple(sorted(own | plugins)) or None
