"""The options that `list` and `explain` have in common: one listing request for a namespace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.names import Mode, NamespaceName

__all__ = [
    "AddressOption",
    "ClientVersionOption",
    "HashOption",
    "ModeOption",
    "NamespaceArgument",
    "OriginalPrincipalOption",
    "PatternOption",
    "PropertyOption",
    "RoleOption",
    "UnusableQuestion",
    "parse_address",
    "parse_mode",
    "parse_namespace",
    "parse_properties",
    "usable",
]


class UnusableQuestion(BrokerCoreError):
    """An option or an argument is invalid; the message names it. The command then ends with 2."""


@contextmanager
def usable() -> Iterator[None]:
    """A block in which a value that does not parse is an error of usage."""
    try:
        yield
    except BrokerCoreError as error:
        raise UnusableQuestion(str(error)) from error


def _complete_mode(incomplete: str) -> list[str]:
    """Completions for shells; the input may be in capitals too, as Pulsar writes the modes."""
    return [mode for mode in ("persistent", "non-persistent", "all") if mode.startswith(incomplete.lower())]


NamespaceArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE", help="tenant/namespace", show_default=False)
]
PatternOption = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="REGEX",
        help="Only topics whose name matches in full, without scheme and partition suffix: 'public/default/orders-.*'.",
        show_default=False,
    ),
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode", metavar="MODE", help="persistent, non-persistent or all.", autocompletion=_complete_mode
    ),
]
PropertyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="KEY=VALUE",
        help="A property of the consumer that asks; may be repeated.",
        show_default=False,
    ),
]
HashOption = Annotated[
    str | None,
    typer.Option(
        "--hash",
        metavar="HASH",
        help="The topics hash of the last answer: unchanged topics are not sent.",
        show_default=False,
    ),
]
RoleOption = Annotated[
    str | None,
    typer.Option("--role", metavar="ROLE", help="The authenticated role that asks.", show_default=False),
]
OriginalPrincipalOption = Annotated[
    str | None,
    typer.Option(
        "--original-principal",
        metavar="ROLE",
        help="The role that a proxy with the role of --role asks for; both must be allowed.",
        show_default=False,
    ),
]
AddressOption = Annotated[
    str,
    typer.Option(
        "--address", metavar="HOST:PORT", help="The address of the client; the port may be left out."
    ),
]
ClientVersionOption = Annotated[
    str | None,
    typer.Option(
        "--client-version",
        metavar="TEXT",
        help="The name of the client's software, such as Pulsar-Java-v4.2.4; by default this command's.",
        show_default=False,
    ),
]


def parse_address(text: str) -> str:
    """``HOST:PORT`` as a server knows a peer: an IPv6 address in brackets, port 0 if none is given."""
    host, colon, port = text.rpartition(":")
    bare = text.removeprefix("[").removesuffix("]")
    if not colon or _is_address(bare):
        host, port = bare, "0"
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UnusableQuestion(f"--address {text!r}: expected HOST or HOST:PORT")
    return f"[{host}]:{int(port)}" if ":" in host else f"{host}:{int(port)}"


def _is_address(text: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def parse_namespace(text: str) -> NamespaceName:
    """``tenant/namespace``; raises :exc:`UnusableQuestion`."""
    from broker_core.names import NamespaceName

    with usable():
        return NamespaceName.parse(text)


def parse_mode(text: str) -> Mode:
    """The mode of ``--mode``; raises :exc:`UnusableQuestion`."""
    from broker_core.names import Mode

    with usable():
        return Mode.parse(text)


def parse_properties(pairs: Sequence[str] | None, *, option: str = "--property") -> dict[str, str]:
    """Properties of ``KEY=VALUE``, each key once; a value may hold ``=``. Raises :exc:`UnusableQuestion`."""
    properties: dict[str, str] = {}
    for pair in pairs or ():
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise UnusableQuestion(f"{option} {pair!r}: expected KEY=VALUE")
        if key in properties:
            raise UnusableQuestion(f"{option} {pair!r}: {key!r} is given twice")
        properties[key] = value
    return properties
