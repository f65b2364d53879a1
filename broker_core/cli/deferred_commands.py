"""Commands that are imported when they are called: until then, a name and one line of help.

So a list of commands, and the completion of a shell, import nothing that the commands need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Final, TypeAlias

import typer

from broker_core.cli.common_options import command
from broker_core.cli.help_format import HelpCommand, HelpGroup

__all__ = ["DeferredCommand", "DeferredGroup", "DeferredTable", "deferred_commands"]

#: Commands by name: their place, or the table of a group, and the first paragraph of their help.
DeferredTable: TypeAlias = Mapping[str, tuple["str | DeferredTable", str]]


class DeferredCommand:
    """A stand-in for a command, or a group, in the list of its group. All but name and help is the command's own."""

    hidden: Final = False
    deprecated: Final = False
    short_help: Final = None
    rich_help_panel: Final = None

    def __init__(self, name: str, help: str | Callable[[], str], load: Callable[[], Any]) -> None:  # noqa: A002
        self.name = name
        self._help = help
        self._load = load
        self._loaded: Any = None

    @property
    def help(self) -> str:
        """The text in a list of commands: the first paragraph of its help."""
        return self._help if isinstance(self._help, str) else self._help()

    def get_short_help_str(self, limit: int = 45) -> str:  # noqa: ARG002 - a list breaks lines itself
        """The help in a list of commands: the whole first paragraph."""
        return self.help

    def __getattr__(self, name: str) -> Any:
        if self._loaded is None:
            self._loaded = self._load()
        return getattr(self._loaded, name)


def deferred_commands(package: str, commands: DeferredTable) -> dict[str, DeferredCommand]:
    """Commands by name, each given as ``module:attribute`` of ``package``, or as the table of a group; and its help.

    The attribute is the command's function, the examples of its help are ``EXAMPLES`` of the module; or it is a typer
    app: a group.
    """
    return {
        name: DeferredCommand(name, help, partial(_loaded, package, name, help, place))
        for name, (place, help) in commands.items()  # noqa: A001
    }


def _group(package: str, name: str, text: str, table: DeferredTable) -> Any:
    class Commands(DeferredGroup):
        deferred = deferred_commands(package, table)

    group = typer.Typer(
        name=name, cls=Commands, help=text, no_args_is_help=True, pretty_exceptions_enable=False
    )

    @group.callback(help=text)
    @command
    def _of_group() -> None:
        """The options ``--config`` and ``--debug`` of the group."""

    return typer.main.get_group(group)


def _loaded(package: str, name: str, text: str, place: str | DeferredTable) -> Any:
    if not isinstance(place, str):
        return _group(package, name, text, place)
    module_name, _, attribute = place.partition(":")
    module = import_module(f"{package}.{module_name}")
    found = getattr(module, attribute)
    if isinstance(found, typer.Typer):
        return typer.main.get_group(found)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, cls=HelpCommand, epilog=module.EXAMPLES)(command(found))
    return typer.main.get_command(alone)


class DeferredGroup(HelpGroup):
    """The group of a typer app whose commands are deferred: ``deferred`` of its class has them."""

    deferred: ClassVar[Mapping[str, DeferredCommand]] = {}

    def __init__(self, **of_typer: Any) -> None:
        super().__init__(**of_typer)
        commands: Any = self.commands
        commands.update(self.deferred)
