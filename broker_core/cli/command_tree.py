"""The commands of `broker-core` in one place."""

from __future__ import annotations

import contextvars
from collections.abc import Sequence
from typing import Annotated, Final

import typer

from broker_core.cli.deferred_commands import deferred_commands
from broker_core.cli.exit_codes import exit_code_of
from broker_core.cli.plugin_commands import PluginCommandsGroup
from broker_core.cli.version import print_version

__all__ = ["app", "is_of_the_core", "run"]

_HELP: Final = (
    "A listing service for clients of Pulsar and Kafka: it answers which topics of a namespace match, and which of "
    "them a client may see."
)


class _RootCommands(PluginCommandsGroup):
    deferred = deferred_commands(
        "broker_core.cli.commands",
        {
            "serve": ("start.serve:serve_clients", "Serve clients until SIGTERM or SIGINT."),
            "list": (
                "listings.list:list_topics",
                "Ask a server for the topics of a namespace, as a consumer with a topics pattern does.",
            ),
            "explain": (
                "listings.explain:explain_listing",
                "Run one listing without a server: what each plugin answered, the plan, sizes, permits, hash.",
            ),
            "config": (
                "start.config:show_settings",
                "Print the settings in force and where each is from: default, file, environment. Secrets are masked.",
            ),
            "check": (
                "start.check:check_settings",
                (
                    "Look at settings, plugins, files, databases, ports and brokers, and say what is wrong: "
                    "all of it in one run."
                ),
            ),
            "reload": (
                "operate.reload:reload_settings",
                "Let the running server read its settings again, as SIGHUP does, or show what that would change.",
            ),
            "kafka": (
                "kafka:app",
                "Topics, configs and nodes of a Kafka server; users and access control lists of Kafka clients.",
            ),
            "demo": (
                "start.demo:serve_demo",
                (
                    "Serve a small demo catalogue on this machine, filled on the first start, "
                    "and show three commands to try."
                ),
            ),
            "plugins": (
                "plugins:app",
                (
                    "Show installed and enabled plugins: the order in which they are asked, their hooks, "
                    "and what is wrong with them."
                ),
            ),
            "clients": (
                "operate.clients:app",
                (
                    "Show the clients that are connected to a running server, over all protocols: "
                    "what they ask, hold and are sent."
                ),
            ),
            "top": (
                "operate.top:show_top",
                "Show live what a running server does: questions, clients, namespaces, memory, plugins.",
            ),
            "shrink-guard": (
                "operate.shrink_guard:app",
                "Show which listings lost many topics at once and are held; let them pass.",
            ),
            "tokens": (
                "tokens:app",
                "Make keys and tokens for clients, as `pulsar tokens` does; show and validate tokens.",
            ),
            "topics": (
                "topics:app",
                "Import, export, create, change, delete and show topics of the catalogue.",
            ),
        },
    )


app = typer.Typer(
    name="broker-core",
    cls=_RootCommands,
    help=_HELP,
    epilog="A plugin that is installed can add a group of commands of its own, called as the plugin.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


@app.callback(help=_HELP)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """The options of `broker-core` itself."""


def run(arguments: Sequence[str]) -> int:
    """The exit code of `broker-core ARGUMENTS`."""
    tree = typer.main.get_command(app)

    def run_command() -> object:
        return tree.main(args=list(arguments), prog_name="broker-core", standalone_mode=False)

    # In a context of its own: the options of one run must not reach the next one in the same process.
    return contextvars.copy_context().run(exit_code_of, run_command, debug="--debug" in arguments)


def is_of_the_core(arguments: Sequence[str]) -> bool:
    """Whether the command belongs to the core, not to a plugin."""
    words = [word for word in arguments if not word.startswith("-")]
    return not words or words[0] in _RootCommands.deferred
