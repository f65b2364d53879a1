"""`broker-core plugins`: the plugins of this environment, in the order of the chain; and `new`, which writes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.cli.commands.plugins import new
from broker_core.cli.common_options import Invocation, command
from broker_core.cli.error_line import one_line
from broker_core.cli.help_examples import examples
from broker_core.cli.help_format import HelpCommand, HelpGroup
from broker_core.cli.running_broker import RunningBroker
from broker_core.redaction import without_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_core.plugins import LoadedPlugin
    from broker_core.settings import PluginsSettings

__all__ = ["EXAMPLES", "app", "described", "show_plugins"]

#: Seconds that a running broker has to describe its plugins; without its answer, the rest is shown all the same.
_PATIENCE: Final = 3.0

EXAMPLES: Final = examples(
    "broker-core plugins --config broker-core.toml",
    "broker-core plugins --config broker-core.toml --format json",
)


def show_plugins(
    invocation: Invocation,
    context: typer.Context,
    *,
    form: Annotated[
        Literal["table", "json"], typer.Option("--format", help="How to print the plugins.")
    ] = "table",
    broker: RunningBroker,
) -> None:
    """Show installed and enabled plugins: the order in which they are asked, their hooks, and what is wrong with them.

    If a broker runs at admin.socket or [http] of the settings, also how the calls of its plugins went.
    """
    from broker_core.cli.printed_output import print_json, print_lines, print_table
    from broker_core.cli.server_process.server_log import silence_logs

    if context.invoked_subcommand is not None:
        return
    if not invocation.debug:
        silence_logs()
    plugins = described(invocation.load().settings.plugins)
    served = _served(broker)
    for plugin in plugins:
        plugin["served"] = served.get(plugin["name"])
        if plugin["error"] is not None:
            plugin["error"] = without_credentials(plugin["error"])
    if form == "json":
        print_json(plugins)
    elif not plugins:
        print_lines(["no plugin is installed"])
    else:
        print_table(
            ["order", "name", "distribution", "version", "state", "hooks", "depends on", "why"],
            (
                [
                    "-" if plugin["order"] is None else plugin["order"],
                    plugin["name"],
                    plugin["distribution"],
                    plugin["version"],
                    plugin["state"],
                    " ".join(hook.removeprefix("broker_core_") for hook in plugin["hooks"]),
                    " ".join(plugin.get("depends_on", ())),
                    "; ".join([*([plugin["error"]] if plugin["error"] else []), *plugin["warnings"]]),
                ]
                for plugin in plugins
            ),
        )
        _print_calls(served)
    if any(plugin["state"] == "error" for plugin in plugins):
        raise typer.Exit(1)  # so that a script sees, before the restart, that something is wrong


def _served(broker: RunningBroker) -> dict[str, dict[str, Any]]:
    """A running broker's descriptions of its plugins, by name; empty if none answers, unless a broker was named."""
    import json

    from broker_core.cli.running_broker import BrokerUnreachable

    try:
        answer = json.loads(broker.get("/plugins", timeout=_PATIENCE))
        return {plugin["name"]: plugin for plugin in answer["plugins"]}
    except BrokerUnreachable:
        if broker.given is not None:
            raise
    except (ValueError, TypeError, LookupError):  # something else listens there
        if broker.given is not None:
            raise BrokerUnreachable(f"{broker.given}: there is something else than a broker") from None
    return {}


def _print_calls(served: Mapping[str, dict[str, Any]]) -> None:
    from broker_core.cli.printed_output import print_table

    rows = [
        [
            name,
            hook,
            calls["calls"],
            calls["answers"].get("error", 0),
            calls["p50_ms"],
            calls["p99_ms"],
            calls["breaker"].replace("_", " "),
            calls["loop"]["blocked"],
            calls["loop"]["longest_ms"],
        ]
        for name, plugin in served.items()
        for hook, calls in plugin["calls"].items()
    ]
    if rows:
        columns = [
            "plugin",
            "hook",
            "calls",
            "errors",
            "p50 ms",
            "p99 ms",
            "breaker",
            "blocked",
            "longest ms",
        ]
        caption = (
            "blocked: how often an async hook held the event loop for 0.1 s; longest: its longest stretch"
        )
        print_table(columns, rows, title="Calls at the running broker", caption=caption)


def described(settings: PluginsSettings) -> list[dict[str, Any]]:
    """Enabled plugins in the order of the chain, then the others by name.

    ``state`` is ``"enabled"``, ``"disabled"`` or ``"error"`` (it is enabled and cannot be used, so that the server does
    not start, or it reports a problem), ``error`` says why. ``order`` counts from 1 and is ``None``
    for a plugin that is not enabled.
    """
    from broker_core.plugins import PluginLoadError, PluginRegistry, chain_order, installed_plugins

    found = {plugin.name: plugin for plugin in installed_plugins()}
    disabled = [name for name in found if name not in settings.enabled]
    plugins: list[dict[str, Any]] = []
    numbers = chain_order(settings.enabled)
    for name in [*settings.enabled, *disabled]:
        order = numbers.get(name)
        installed = found.get(name)
        plugin: dict[str, Any] = {
            "name": name,
            "distribution": installed.distribution if installed else None,
            "version": installed.version if installed else None,
            "hooks": [],
            "order": order,
            "state": "enabled" if order is not None else "disabled",
            "error": None,
            "warnings": [],
        }
        try:
            loaded = PluginRegistry.load(
                [name], {name: settings.table(name)} if name in settings.tables else {}
            )
            plugin |= {
                key: value for key, value in loaded.describe()[0].items() if key not in {"order", "state"}
            }
            problems = _problems(loaded[name]) if order is not None else []
            if problems:
                plugin["error"], plugin["state"] = "; ".join(problems), "error"
        except PluginLoadError as error:
            plugin["error"] = str(error)
            if order is not None:
                plugin["state"] = "error"
            elif error.missing:  # nothing is wrong: it is not set up
                plugin["error"] = f"to be enabled it needs {' and '.join(error.missing)}"
        plugins.append(plugin)
    if settings.enabled and all(plugin["state"] != "error" for plugin in plugins):
        _add_warnings_of_the_chain(plugins, settings)
    return plugins


def _problems(plugin: LoadedPlugin) -> list[str]:
    """The problems that the plugin itself reports."""
    from broker_core.plugins import as_problems

    found = plugin.call_plain("broker_core_problems", settings=plugin.options.settings)
    try:
        return [one_line(problem) for problem in as_problems([] if found is None else found)]
    except TypeError as error:
        return [f"returned no problems from broker_core_problems: {error}"]


def _add_warnings_of_the_chain(plugins: list[dict[str, Any]], settings: PluginsSettings) -> None:
    """Add warnings that only appear with all plugins together, such as a ``tryfirst`` that the order overrules."""
    from broker_core.plugins import PluginRegistry

    for warning in PluginRegistry.load(settings.enabled, settings.tables).warnings:
        for plugin in plugins:
            of_this_plugin = f"plugin {plugin['name']!r} "
            text = warning.removeprefix(of_this_plugin)
            if text != warning and text not in plugin["warnings"]:
                plugin["warnings"].append(text)


app = typer.Typer(name="plugins", cls=HelpGroup, pretty_exceptions_enable=False)
app.callback(invoke_without_command=True, epilog=EXAMPLES)(command(show_plugins))
app.command("new", cls=HelpCommand, epilog=new.EXAMPLES)(command(new.write_new_plugin))
