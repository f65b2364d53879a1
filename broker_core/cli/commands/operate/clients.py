"""`broker-core clients`: the clients that are connected to a running server, over all protocols; and `disconnect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import urlencode

import typer

from broker_core.cli.common_options import command
from broker_core.cli.help_examples import examples
from broker_core.cli.help_format import HelpCommand, HelpGroup
from broker_core.cli.running_broker import RunningBroker
from broker_core.counted import counted

__all__ = ["CLIENT_COLUMNS", "app", "client_row", "clients_path"]

_PATH: Final = "/v1/server/clients"
#: The head of the table of clients.
CLIENT_COLUMNS: Final = (
    "address",
    "role",
    "transport",
    "client",
    "age",
    "asks now",
    "namespaces",
    "memory",
    "asks/s",
    "bytes/s",
)
_SHOWN: Final = 3

_RoleOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--role", help="Clients of this role, or whose proxy asks for it; * is any text."),
]
_AddressOption: TypeAlias = Annotated[
    str | None, typer.Option("--address", help="Clients at this HOST or HOST:PORT, or of a network.")
]
_NamespaceOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--namespace", help="Clients with a request to it within the last minute; * is any text."),
]

app = typer.Typer(name="clients", cls=HelpGroup, pretty_exceptions_enable=False)


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "broker-core clients --config broker-core.toml",
        "broker-core clients --namespace 'acme/*' --order memory --config broker-core.toml",
    ),
)
@command
def show_clients(
    context: typer.Context,
    *,
    role: _RoleOption = None,
    address: _AddressOption = None,
    namespace: _NamespaceOption = None,
    order: Annotated[
        Literal["age", "requests", "bytes", "memory"],
        typer.Option("--order", help="The oldest first, or those with the most requests, bytes or memory."),
    ] = "age",
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Clients to show.")] = 100,
    form: Annotated[
        Literal["table", "json"], typer.Option("--format", help="How to print the clients.")
    ] = "table",
    broker: RunningBroker,
) -> None:
    """Show the connected clients of a running server, over all protocols: their requests, memory and traffic."""
    from broker_core.cli.printed_output import print_json, print_lines, print_table

    if context.invoked_subcommand is not None:
        return
    path = clients_path(role=role, address=address, namespace=namespace, order=order, limit=limit)
    said = broker.json(path)
    items = said.get("items", [])
    if form == "json":
        print_json(items)
    elif not items:
        print_lines(["no client is connected" if role is address is namespace is None else "no such client"])
    else:
        left = said.get("total", 0) - len(items)
        caption = f"and {left} more: --limit" if left > 0 else None
        print_table(CLIENT_COLUMNS, map(client_row, items), caption=caption)


@app.command(
    "disconnect",
    cls=HelpCommand,
    epilog=examples(
        "broker-core clients disconnect --role batch --config broker-core.toml",
        "broker-core clients disconnect --address 192.0.2.7:53211 --config broker-core.toml",
    ),
)
@command
def disconnect_clients(
    *,
    role: _RoleOption = None,
    address: _AddressOption = None,
    namespace: _NamespaceOption = None,
    broker: RunningBroker,
) -> None:
    """Close the connections of the clients that the options select, at least one. Clients may connect again."""
    from broker_core.cli.printed_output import print_lines

    if role is None and address is None and namespace is None:
        raise typer.BadParameter("say which clients: --role, --address or --namespace")
    path = clients_path("/disconnect", role=role, address=address, namespace=namespace)
    count = broker.json(path, post=True).get("disconnected", 0)
    print_lines([f"disconnected: {counted(count, 'client')}"])


def clients_path(operation: str = "", **parameters: str | int | None) -> str:
    """The path of the clients with the given parameters."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{_PATH}{operation}?{urlencode(given)}"


def client_row(client: Mapping[str, Any]) -> Sequence[object]:
    """A client in the columns of :data:`CLIENT_COLUMNS`."""
    role, principal = client["role"], client["original_principal"]
    asks = [f"{each['operation']} {each['namespace']} {each['seconds']:.1f}s" for each in client["asks"]]
    return [
        client["address"],
        role if principal is None else f"{role} for {principal}",
        client["transport"],
        client["client_version"],
        f"{client['age_seconds']:.0f}s",
        _first(asks, client["under_way"]),
        _first(client["namespaces"], len(client["namespaces"])),
        client["memory_bytes"],
        f"{client['requests_per_second']:.1f}",
        f"{client['bytes_per_second']:.0f}",
    ]


def _first(lines: Sequence[str], count: int) -> str:
    """The first lines, and the number of further ones."""
    more = count - min(len(lines), _SHOWN)
    return "\n".join([*lines[:_SHOWN], *([f"and {more} more"] if more > 0 else [])])
