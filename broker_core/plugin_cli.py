"""Building blocks of plugins' commands: settings, arguments and options, progress, printed output.

A plugin adds commands by the hook ``broker_core_commands``; each of them gets ``--config`` and ``--debug``
automatically. A parameter annotated with one of these types stands for the options of a group, and gets their values:

=========================================  ===========================================================
:class:`~broker_core.ListingRequest`       ``NAMESPACE``, ``--pattern``, ``--mode`` and ``--property``
:class:`Deletions`                         ``--max-deletions`` and ``--allow-mass-deletions``
:class:`RunningBroker`                     ``--broker``, ``--token-file``, ``--cert``, ``--key``, ``--ca``
=========================================  ===========================================================

So does a dataclass of the plugin whose fields are annotated with typer's options, each with its name.

A :exc:`~broker_core.errors.BrokerCoreError` that a command raises is one line on standard error and exit code 1, an
error of typer (:exc:`typer.BadParameter`) exit code 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broker_core.cli.common_options import current_invocation, plugin_settings
from broker_core.cli.error_line import say
from broker_core.cli.help_examples import examples
from broker_core.cli.options.deletion_limits import Deletions
from broker_core.cli.options.given_question import NamespaceArgument
from broker_core.cli.options.option_values import UnusableQuestion, parse_properties
from broker_core.cli.printed_output import print_json, print_lines, print_table, printable
from broker_core.cli.progress_bar import import_progress
from broker_core.cli.running_broker import BrokerUnreachable, RunningBroker
from broker_core.guards import MassDeletion

__all__ = [
    "BrokerSettings",
    "BrokerUnreachable",
    "Deletions",
    "MassDeletion",
    "NamespaceArgument",
    "RunningBroker",
    "UnusableQuestion",
    "broker_settings",
    "examples",
    "import_progress",
    "parse_properties",
    "plugin_settings",
    "print_json",
    "print_lines",
    "print_table",
    "printable",
    "say",
]


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The settings of ``--config`` as of now, apart from tables of plugins.

    ``file``: the settings file, ``None`` for the defaults. ``catalog``: the embedded catalogue's file, there or not.
    ``max_pattern_length``: the longest topics pattern that is compiled, in UTF-16 code units. ``property_keys``: the
    properties that select topics of the embedded catalogue. ``plugins``: the enabled plugins, in the order of the
    chain.
    """

    file: Path | None
    catalog: Path
    max_pattern_length: int
    property_keys: frozenset[str]
    plugins: tuple[str, ...]

    def plugin_property_keys(self) -> frozenset[str]:
        """The property keys that the enabled plugins select by; they are loaded for it, and not started.

        Raises a :exc:`~broker_core.errors.BrokerCoreError` if one of them cannot be loaded.
        """
        from broker_core.plugins import PluginRegistry

        plugins = current_invocation().load().settings.plugins
        return PluginRegistry.load(plugins.enabled, plugins.tables).property_keys


def broker_settings() -> BrokerSettings:
    """For commands of a plugin: the broker's settings. Raises :exc:`~broker_core.errors.BrokerCoreError`."""
    loaded = current_invocation().load()
    settings = loaded.settings
    return BrokerSettings(
        loaded.file,
        settings.catalog.path,
        settings.patterns.max_length,
        frozenset(settings.catalog.property_keys),
        tuple(settings.plugins.enabled),
    )
