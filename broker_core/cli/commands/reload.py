"""`broker-core reload`: the running server reads its settings again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.running_broker import BrokerUnreachable, admin_socket, get

__all__ = ["EXAMPLES", "reload_settings"]

EXAMPLES: Final = examples(
    "broker-core reload --config broker-core.toml",
    "# what it would change, and what needs a restart",
    "broker-core reload --config broker-core.toml --dry-run",
)

#: Seconds that a reload may take: plugins may connect to databases anew.
_PATIENCE: Final = 120.0


def reload_settings(
    invocation: Invocation,
    *,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Change nothing: show what would be changed.", show_default=False),
    ] = False,
    form: Annotated[
        Literal["lines", "json"], typer.Option("--format", help="How to print what was changed.")
    ] = "lines",
) -> None:
    """Let the running server read its settings file again, as SIGHUP does; it is asked by admin.socket.

    What is live changes at once, and nothing under way is lost. What needs a restart is named and left. A file that is
    wrong changes nothing, and ends this with 1.
    """
    from broker_core.cli.printed_output import print_json, print_lines

    method = "GET" if dry_run else "POST"
    told = _read(get(admin_socket(invocation.load().settings), "/-/reload", timeout=_PATIENCE, method=method))
    if form == "json":
        print_json(told)
    else:
        print_lines(_lines(told, dry_run=dry_run))
    if told["failed"]:
        raise typer.Exit(1)


def _lines(told: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    for name, reason in told["failed"].items():
        yield f"failed: {name}: {reason}"
    for word, changes in (
        ("would change" if dry_run else "changed", "changed"),
        ("needs a restart", "restart"),
    ):
        for change in told[changes]:
            values = (json.dumps(change[side], ensure_ascii=False) for side in ("before", "after"))
            yield f"{word}: {change['setting']}: {' -> '.join(values)}"
    if told["reloaded"]:
        yield f"reloaded: {', '.join(told['reloaded'])}"
    if not (told["failed"] or told["changed"] or told["restart"]):
        yield "the settings are as the server has them"


def _read(text: str) -> dict[str, Any]:
    told = json.loads(text)
    if not isinstance(told, dict) or not {"failed", "changed", "restart", "reloaded"} <= told.keys():
        raise BrokerUnreachable("there is something else than a broker-core of this release")
    return told
