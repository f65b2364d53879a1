"""The commands of `broker-core` in one place."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Annotated

import typer

from broker_core.cli.commands import (
    check,
    config,
    demo,
    explain,
    list,  # noqa: A004 - a command
    plugins,
    serve,
    topics,
)
from broker_core.cli.exit_codes import ended
from broker_core.cli.invocation import command
from broker_core.cli.plugin_commands import GroupOfPlugins

__all__ = ["app", "run"]

app = typer.Typer(
    name="broker-core",
    cls=GroupOfPlugins,
    help="Answers which topics of a namespace match, for whom: a listing service for Pulsar clients.",
    epilog="A plugin that is installed can add a group of commands of its own, called as the plugin.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from broker_core import __version__

        print(f"broker-core {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Answers which topics of a namespace match, for whom: a listing service for Pulsar clients."""


for name, module in {
    "serve": serve,
    "list": list,
    "explain": explain,
    "config": config,
    "check": check,
    "demo": demo,
}.items():
    app.command(name, epilog=module.EXAMPLES)(command(module.run))
app.add_typer(plugins.app, name="plugins")
app.add_typer(topics.app, name="topics")


def run(arguments: Sequence[str]) -> int:
    """The exit code of `broker-core ARGUMENTS`."""
    tree = typer.main.get_command(app)

    def run_command() -> object:
        return tree.main(args=[*arguments], prog_name="broker-core", standalone_mode=False)

    # In a context of its own: what one run is told by its options must not reach the next one of the same process.
    return contextvars.copy_context().run(ended, run_command, debug="--debug" in arguments)
