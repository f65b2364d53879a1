"""`broker-core shrink-guard`: the listings that a server holds, and letting them pass."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import typer

from broker_core.cli.common_options import command
from broker_core.cli.help_examples import examples
from broker_core.cli.help_format import HelpCommand, HelpGroup
from broker_core.cli.running_broker import RunningBroker
from broker_core.counted import counted
from broker_core.errors import InvalidName
from broker_core.names import NamespaceName

__all__ = ["app"]

_HELP: Final = "Show which listings lost many topics at once and are held; let them pass."

app = typer.Typer(
    name="shrink-guard",
    cls=HelpGroup,
    help=_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(help=_HELP)
@command
def _of_group() -> None:
    """The options ``--config`` and ``--debug`` of the group."""


@app.command(
    "list", cls=HelpCommand, epilog=examples("broker-core shrink-guard list --config broker-core.toml")
)
@command
def list_held(
    *,
    form: Annotated[
        Literal["table", "json"], typer.Option("--format", help="How to print the listings.")
    ] = "table",
    broker: RunningBroker,
) -> None:
    """Show the listings that a running server holds: since when, how many topics they lack, and which client asked."""
    from broker_core.cli.printed_output import print_lines, print_rows

    held = broker.items("/v1/held-listings")
    if not held and form == "table":
        print_lines(["nothing is held"])
        return
    print_rows(["namespace", "question", "since", "until", "before", "now", "missing"], held, form)


@app.command(
    "accept",
    cls=HelpCommand,
    epilog=examples("broker-core shrink-guard accept acme/orders --config broker-core.toml"),
)
@command
def accept_held(
    namespace: Annotated[
        str,
        typer.Argument(
            metavar="NAMESPACE", help="TENANT/NAMESPACE whose missing topics were deleted on purpose."
        ),
    ],
    *,
    broker: RunningBroker,
) -> None:
    """Let the next listing of a namespace pass as it is: clients then see the topics vanish, and may unsubscribe."""
    from broker_core.cli.printed_output import print_lines

    try:
        name = NamespaceName.parse(namespace)
    except InvalidName as error:
        raise typer.BadParameter(str(error)) from None
    said = broker.json(f"/v1/namespaces/{name}/held-listings/accept", post=True)
    accepted = said.get("accepted", 0)
    print_lines(
        [
            f"accepted: {counted(accepted, 'held listing')} of {name}"
            if accepted
            else f"nothing of {name} is held: what is listed next within shrink_guard.hold passes"
        ]
    )
