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

from broker_core.cli.broker_settings import BrokerSettings, broker_settings
from broker_core.cli.common_options import plugin_settings
from broker_core.cli.error_line import say
from broker_core.cli.help_examples import examples
from broker_core.cli.options.deletion_limits import Deletions
from broker_core.cli.options.given_question import NamespaceArgument
from broker_core.cli.options.question import UnusableQuestion, parse_properties
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
