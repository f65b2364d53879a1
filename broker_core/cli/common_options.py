"""Common options of every command: ``--config`` and ``--debug``, and the settings that follow from them.

:func:`command` adds both options to a function: each command has them, a plugin's commands too, and a group passes its
own on to its commands (``broker-core topics --config F show ...``).
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from broker_core.cli.early_signals import restore_signals
from broker_core.cli.option_groups import expanded, grouped

if TYPE_CHECKING:
    from broker_core.settings import LoadedSettings, Settings

__all__ = [
    "Given",
    "Invocation",
    "Options",
    "catalog_option",
    "command",
    "current_invocation",
    "given_settings",
    "plugin_settings",
]

#: Maps an option (``--pulsar``) to the path of its setting and its value; ``None``: not given.
Options: TypeAlias = Mapping[str, tuple[tuple[str, ...], object]]

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The TOML file of settings. Without it $BROKER_CORE_CONFIG, else the defaults.",
        show_default=False,
    ),
]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show the traceback of an error, and debug logs.", show_default=False)
]


@dataclass(frozen=True, slots=True)
class Given:
    """Settings, and plugins as objects by name, that a test gives in place of files and the environment."""

    settings: Settings
    plugins: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of a command."""

    config: Path | None = None
    debug: bool = False
    given: Given | None = None

    def load(self, options: Options | None = None, *, again: bool = False) -> LoadedSettings:
        """The settings in force; raises :exc:`~broker_core.settings.SettingsError`. ``again``: for a running server. An

        invalid one of ``options`` is an :exc:`~broker_core.cli.options.option_values.UnusableQuestion`.
        """
        from broker_core.cli.options.option_values import UnusableQuestion
        from broker_core.settings import LoadedSettings, SettingsError, load_settings

        if self.given is not None and self.config is None:
            return LoadedSettings(self.given.settings, None, ())
        try:
            return load_settings(self.config, options=options, again=again)
        except SettingsError as error:
            if error.layer != "option":
                raise
            raise UnusableQuestion(str(error)) from error


_NO_INVOCATION: Final = Invocation()  # frozen
_CURRENT: Final[ContextVar[Invocation]] = ContextVar("invocation", default=_NO_INVOCATION)


def catalog_option(catalog: Path | None) -> Options:
    """The option ``--catalog``, for :meth:`Invocation.load`."""
    return {"--catalog": (("catalog", "path"), catalog)}


def current_invocation() -> Invocation:
    """The current run of a command, for commands of plugins, which get no :class:`Invocation`."""
    return _CURRENT.get()


def plugin_settings(name: str, *, optional: bool = False) -> Any:
    """For commands of a plugin: its own table of the settings, as an instance of its ``broker_core_settings`` model.

    ``None`` if it has no model, and with ``optional`` if the settings have no such table. It need not be enabled.
    Raises :exc:`~broker_core.errors.BrokerCoreError` if the settings are wrong.
    """
    from broker_core.plugins import PluginRegistry

    invocation = current_invocation()
    plugins_table = invocation.load().settings.plugins
    if optional and name not in plugins_table.tables:
        return None
    table = plugins_table.table(name)
    given = {} if invocation.given is None else invocation.given.plugins
    plugins = {name: given[name]} if name in given else {}
    return PluginRegistry.load([name], {name: table}, given=plugins)[name].options.settings


@contextmanager
def given_settings(given: Given) -> Iterator[None]:
    """A block in which commands use the given settings and plugins; for tests of commands."""
    token = _CURRENT.set(Invocation(given=given))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def command(function: Callable[..., Any]) -> Callable[..., None]:
    """Add ``--config`` and ``--debug`` to a command or a group; its parameter ``invocation``, if any, is the run.

    An ``async def`` function runs on an event loop of its own. A parameter may stand for several options
    (:mod:`.option_groups`).
    """
    signature = inspect.signature(function)
    hints = typing.get_type_hints(function, include_extras=True)
    wants_invocation = "invocation" in signature.parameters
    own = [
        parameter.replace(annotation=hints.get(name, parameter.annotation))
        for name, parameter in signature.parameters.items()
        if name != "invocation"
    ]
    shown = expanded(own)
    common = [
        inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ConfigOption),
        inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=DebugOption),
    ]
    added = [parameter for parameter in common if parameter.name not in signature.parameters]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> None:
        restore_signals()
        above = _CURRENT.get()
        given = {parameter.name: kwargs.pop(parameter.name) for parameter in added}
        debug = bool(given.get("debug")) or above.debug
        config = given.get("config")
        if config is not None and "=" in str(config) and not Path(config).exists():
            # Kafka's own commands take configs of topics so: the settings would be ignored silently.
            raise typer.BadParameter(
                f"{config} is no file: --config names the settings, --config-entry is KEY=VALUE"
            )
        invocation = Invocation(config=config or above.config, debug=debug, given=above.given)
        _CURRENT.set(invocation)
        passed = {"invocation": invocation} if wants_invocation else {}
        result = function(*args, **grouped(own, kwargs), **passed)
        if inspect.iscoroutine(result):
            import asyncio

            asyncio.run(result)

    # Typer reads the parameters from here, and must not find the ones of the function inside.
    del run.__wrapped__
    run.__signature__ = inspect.Signature([*shown, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*shown, *added]}
    return run
