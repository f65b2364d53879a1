"""`broker-core plugins new`: writes a new plugin from a template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from broker_core.cli.help_examples import examples

__all__ = ["EXAMPLES", "write_new_plugin"]

EXAMPLES: Final = examples("broker-core plugins new acme-topics")


def write_new_plugin(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The name of the plugin, of its distribution and of the new folder: acme-topics.",
            show_default=False,
        ),
    ],
) -> None:
    """Write a working plugin into a new folder ./NAME: hooks, settings, a metric, a command and tests.

    It is a distribution of its own, to be installed beside broker-core and changed into what you need.
    """
    from broker_core.cli.new_plugin import write_plugin
    from broker_core.cli.printed_output import print_lines

    write_plugin(name, Path())
    print_lines(
        [
            f"wrote {name}, a plugin that runs:",
            f"  cd {name}",
            "  pip install --editable '.[test]'",
            "  python -m pytest",
            "  broker-core serve --config broker-core.toml",
        ]
    )
