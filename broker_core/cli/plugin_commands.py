"""Groups of commands that installed plugins add by the hook ``broker_core_commands``: ``broker-core NAME ...``.

A plugin is loaded only when one of its commands is called, also if it is not enabled: a command may prepare the
plugin's database before. Until then only its distribution's metadata is read. A broken plugin only fails its own
commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import typer
import typer.core

from broker_core.cli.common_options import command
from broker_core.cli.deferred_commands import DeferredCommand, DeferredGroup
from broker_core.cli.help_format import HelpCommand, HelpGroup
from broker_core.errors import BrokerCoreError
from broker_core.memory import let_pandas_in
from broker_core.plugin_api import PROJECT

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["PluginCommandsFailed", "PluginCommandsGroup", "commands_of"]


class PluginCommandsFailed(BrokerCoreError):
    """A plugin's commands cannot be loaded; the message names the plugin and its distribution."""


class PluginCommandsGroup(DeferredGroup):
    """The commands of the core, then one group per installed plugin, which is not imported before it is called."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, or the group of a plugin if the core has none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        found = [entry for entry in _entry_points() if entry.name == cmd_name]
        return _deferred(found[0]) if found else None

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands and of all plugins."""
        names = super().list_commands(ctx)
        return [*names, *(entry.name for entry in _entry_points() if entry.name not in names)]


def _deferred(entry: EntryPoint) -> DeferredCommand:
    def summary() -> str:
        said = entry.dist.metadata["Summary"] if entry.dist is not None else None
        return said or f"Commands of the plugin {entry.name}."

    return DeferredCommand(entry.name, summary, lambda: _group(entry.name, _origin(entry), entry.load))


def _entry_points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points

    return sorted(entry_points(group=PROJECT), key=lambda entry: entry.name)


def _origin(entry: EntryPoint) -> str:
    return f" (distribution {entry.dist.name})" if entry.dist is not None else ""


def commands_of(name: str, plugin: object) -> Any:
    """The group of the commands of a plugin that is given as an object. Raises :exc:`PluginCommandsFailed`."""
    return _group(name, "", lambda: plugin)


def _group(name: str, origin: str, load: Callable[[], object]) -> Any:
    """The group of a plugin's commands. Raises :exc:`PluginCommandsFailed` if it has none that works."""
    import pluggy

    from broker_core.plugin_api import HookSpecs
    from broker_core.plugins import in_words

    let_pandas_in()  # a command of a plugin may work with it
    try:
        plugin = load()
        manager = pluggy.PluginManager(PROJECT)
        manager.add_hookspecs(HookSpecs)
        manager.register(plugin, name=name)
        found = bool(manager.hook.broker_core_commands.get_hookimpls())
        app = typer.Typer(
            name=name,
            cls=HelpGroup,
            help=_help(name, plugin),
            no_args_is_help=True,
            pretty_exceptions_enable=False,
        )
        app.callback()(_no_options_of_its_own)
        manager.hook.broker_core_commands(app=app)
        _with_common_options(app)
        group = typer.main.get_group(app)
    except (Exception, SystemExit) as error:
        raise PluginCommandsFailed(
            f"plugin {name!r}{origin} has no usable commands: {in_words(error)}"
        ) from error
    if not found:
        raise PluginCommandsFailed(f"plugin {name!r}{origin} adds no commands")
    return group


def _no_options_of_its_own() -> None:
    """A group of one command is still a group, and takes ``--config`` too."""


def _with_common_options(app: typer.Typer) -> None:
    of_itself = [] if app.registered_callback is None else [app.registered_callback]
    infos: list[Any] = [*app.registered_commands, *app.registered_groups, *of_itself]
    for info in infos:
        if callable(info.callback):  # of a group it may be typer's stand-in for "not given"
            info.callback = command(info.callback)
    for one in app.registered_commands:
        if one.cls in (None, typer.core.TyperCommand):
            one.cls = HelpCommand
    for group in app.registered_groups:
        if not isinstance(group.cls, type) or group.cls is typer.core.TyperGroup:
            group.cls = HelpGroup
        if group.typer_instance is not None:
            _with_common_options(group.typer_instance)


def _help(name: str, plugin: object) -> str:
    """The first line of the plugin's docstring."""
    said = (getattr(plugin, "__doc__", None) or "").strip().partition("\n")[0]
    return said or f"Commands of the plugin {name}."
