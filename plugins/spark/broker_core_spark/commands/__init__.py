"""The commands ``broker-core spark ...``."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import typer

__all__ = ["COMMANDS", "add_commands"]

#: The commands. ``build_command`` has the function ``build``, and so on. Functions import what they need.
COMMANDS: Final = ("build", "follow", "status", "use", "gc")


def add_commands(app: typer.Typer) -> None:
    """Add all commands to the plugin's group."""
    for name in COMMANDS:
        module = import_module(f"{__name__}.{name}_command")
        app.command(name, epilog=getattr(module, "EXAMPLES", None))(getattr(module, name))
    app.add_typer(import_module(f"{__name__}.patterns_command").app, name="patterns")
