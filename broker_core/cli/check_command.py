"""`broker-core check`: all that is wrong with settings and what they name, before the server starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from broker_core.checks import LEVELS, Check
from broker_core.cli.call import Call
from broker_core.cli.examples import examples

if TYPE_CHECKING:
    from broker_core.settings import LoadedSettings, Settings

__all__ = ["EXAMPLES", "all_checks", "run"]

EXAMPLES: Final = examples(
    "broker-core check --config broker-core.toml",
    "broker-core check --config broker-core.toml --format json | jq '.[] | select(.level == \"error\")'",
)


def run(
    call: Call,
    *,
    form: Annotated[
        Literal["lines", "json"], typer.Option("--format", help="How to print what was found.")
    ] = "lines",
) -> None:
    """Look at settings, plugins, files, databases, ports and brokers, and say what is wrong: all of it in one run.

    One line each: `ok`, `warning` or `error`, a name, and what to do. Ends with 1 where there is an error. It changes
    nothing. Run it before a start: the ports of a server that runs are in use.
    """
    from broker_core.cli.logs import silence_logs
    from broker_core.cli.output import print_json, print_lines

    if not call.debug:
        silence_logs()
    found = all_checks(call)
    if form == "json":
        print_json([{"level": each.level, "name": each.name, "text": each.text} for each in found])
    else:
        print_lines(f"{each.level} {each.name}: {each.text}" for each in found)
    if any(each.level == "error" for each in found):
        raise typer.Exit(1)


def all_checks(call: Call) -> list[Check]:
    """Everything that was looked at, settings first. What is wrong with one setting keeps none of the others unseen."""
    from broker_core.cli.checks import (
        bounded,
        catalog_checks,
        host_checks,
        limit_checks,
        listen_checks,
        plugin_checks,
        upstream_checks,
    )
    from broker_core.settings import find_problems

    loaded, problems = find_problems(call.config)
    found = bounded("settings", lambda: [*_settings_found(loaded, problems)])
    if loaded is None:
        return found
    settings: Settings = loaded.settings
    upstream = settings.upstream
    parts: list[tuple[str, Any]] = [
        ("listen", lambda: listen_checks(settings)),
        ("limits", lambda: limit_checks(settings)),
        ("host", lambda: host_checks(settings)),
        ("catalog.path", lambda: catalog_checks(settings))
        if upstream is None
        else ("upstream.service_url", lambda: upstream_checks(upstream)),
    ]
    for name, check in parts:
        found += bounded(name, check)
    # Each plugin has its own patience.
    found += bounded("plugins", lambda: plugin_checks(settings.plugins), patience=600)
    return found


def _settings_found(loaded: LoadedSettings | None, problems: list[str]) -> list[Check]:
    found = [Check.error("settings", problem) for problem in problems]
    if not found and loaded is not None:
        where = "no settings file, the defaults" if loaded.file is None else str(loaded.file.absolute())
        found.append(Check.ok("settings", where))
    assert all(each.level in LEVELS for each in found)
    return found
