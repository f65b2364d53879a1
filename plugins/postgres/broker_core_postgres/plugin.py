"""Topic listings from a PostgreSQL index, by pattern and by properties.

The module is the plugin: the entry point ``postgres`` of the group ``broker_core`` loads to it, and its hooks are those
of one :class:`PostgresPlugin`. Programs that embed several brokers make an instance for each.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from importlib.util import find_spec
from typing import Final

import typer

from broker_core import hookimpl
from broker_core_postgres.settings import PostgresSettings

__all__ = ["COMMANDS", "PostgresPlugin"]

#: The commands of the group ``broker-core postgres``, each in a module of its own with ``run`` and ``EXAMPLES``.
COMMANDS: Final = ("migrate", "status", "explain", "load", "sync", "verify", "set-properties")


class PostgresPlugin:
    """The hooks. One instance serves one broker."""

    @hookimpl
    def broker_core_settings(self) -> type[PostgresSettings]:
        """The model of ``[plugins.postgres]``."""
        return PostgresSettings

    @hookimpl
    def broker_core_depends_on(self) -> Collection[str]:
        """Answers depend on the question alone, never on who asks."""
        return {"pattern", "properties"}

    @hookimpl
    def broker_core_commands(self, app: typer.Typer) -> None:
        """Add the commands; their modules are imported here, since only the command line needs them."""
        for name in COMMANDS:
            module_name = f"broker_core_postgres.commands.{name.replace('-', '_')}_command"
            if find_spec(module_name) is None:
                continue
            module = import_module(module_name)
            app.command(name, epilog=getattr(module, "EXAMPLES", None))(module.run)


_plugin: Final = PostgresPlugin()
broker_core_settings = _plugin.broker_core_settings
broker_core_depends_on = _plugin.broker_core_depends_on
broker_core_commands = _plugin.broker_core_commands
