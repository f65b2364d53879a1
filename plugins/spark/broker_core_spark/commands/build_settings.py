"""The settings of ``broker-core spark build``: those of the broker, and over them the options that are given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import broker_settings, plugin_settings, say
from broker_core_spark.settings import SparkSettings

if TYPE_CHECKING:
    from broker_core_spark.batch import PublishGates

__all__ = ["build_settings", "property_keys", "publish_gates"]


def build_settings() -> SparkSettings:
    """The settings of builds: ``[plugins.spark]`` of ``--config``, else the defaults."""
    found: SparkSettings | None = plugin_settings("spark", optional=True)
    return SparkSettings(store="-") if found is None else found


def publish_gates(settings: SparkSettings, **options: float | None) -> PublishGates:
    """The gates of the settings, and of the options that are given."""
    from broker_core_spark.batch import PublishGates

    of_settings = PublishGates(
        settings.min_questions,
        settings.max_question_loss,
        settings.max_topic_loss,
        settings.max_coverage_loss,
    )
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    return replace(of_settings, **given)


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
