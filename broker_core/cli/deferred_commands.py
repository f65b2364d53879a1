"""Commands that are imported when they are called: until then, a name and one line of help.

So a list of commands, and the completion of a shell, import nothing that the commands need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Final

import typer

from broker_core.cli.common_options import command
from broker_core.cli.help_format import HelpCommand, HelpGroup

__all__ = ["DeferredCommand", "DeferredGroup", "deferred_commands"]


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


def deferred_commands(package: str, commands: Mapping[str, tuple[str, str]]) -> dict[str, DeferredCommand]:
    """Commands by name, each given as ``module:attribute`` of ``package``, and its help.

    The attribute is the command's function, the examples of its help are ``EXAMPLES`` of the module; or it is a typer
    app: a group.
    """
    return {
        name: DeferredCommand(name, help, lambda name=name, place=place: _loaded(package, name, place))  # type: ignore[misc]
        for name, (place, help) in commands.items()  # noqa: A001
    }


def _loaded(package: str, name: str, place: str) -> Any:
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
