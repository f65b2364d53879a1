"""Groups of commands that installed plugins add by the hook ``broker_core_commands``: ``broker-core NAME ...``.

Plugins are loaded only when one of them is called or a list of all commands is wanted, whether they are enabled or not:
a command may be what prepares a plugin's database before it is. A broken plugin only fails its own commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer
import typer.core

from broker_core.cli.call import command
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GroupOfPlugins", "PluginCommandsFailed"]


class PluginCommandsFailed(BrokerCoreError):
    """A plugin's commands cannot be had; the message names the plugin and its distribution."""


class GroupOfPlugins(typer.core.TyperGroup):
    """The commands of the core, then one group per plugin that has commands."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, a plugin's group if the core has none of the name; a broken plugin raises."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        found = [entry for entry in _entry_points() if entry.name == cmd_name]
        return _group(found[0]) if found else None

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands; broken plugins have none."""
        names = super().list_commands(ctx)
        for entry in _entry_points():
            try:
                if entry.name not in names and _group(entry) is not None:
                    names.append(entry.name)
            except PluginCommandsFailed:
                continue
        return names


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    from broker_core.hookspecs import PROJECT

    return sorted(entry_points(group=PROJECT), key=lambda entry: entry.name)


def _group(entry: EntryPoint) -> Any | None:
    """The group of a plugin's commands, ``None`` where it has none."""
    import pluggy

    from broker_core.hookspecs import PROJECT, HookSpecs

    try:
        plugin = entry.load()
        manager = pluggy.PluginManager(PROJECT)
        manager.add_hookspecs(HookSpecs)
        manager.register(plugin, name=entry.name)
        if not manager.hook.broker_core_commands.get_hookimpls():
            return None
        app = typer.Typer(
            name=entry.name, help=_help(entry, plugin), no_args_is_help=True, pretty_exceptions_enable=False
        )
        app.callback()(command(_no_options_of_its_own))
        manager.hook.broker_core_commands(app=app)
        _with_common_options(app)
        return typer.main.get_group(app)
    except (Exception, SystemExit) as error:
        origin = f" (distribution {entry.dist.name})" if entry.dist is not None else ""
        raise PluginCommandsFailed(
            f"plugin {entry.name!r}{origin} has no usable commands: {type(error).__name__}: {error}"
        ) from error


def _no_options_of_its_own() -> None:
    """A group of one command is still a group, and takes ``--config`` too."""


def _with_common_options(app: typer.Typer) -> None:
    for info in app.registered_commands:
        if info.callback is not None:
            info.callback = command(info.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _with_common_options(group.typer_instance)


def _help(entry: EntryPoint, plugin: object) -> str:
    """The first line of what the plugin says about itself."""
    said = (getattr(plugin, "__doc__", None) or "").strip().partition("\n")[0]
    return said or f"Commands of the plugin {entry.name}."
