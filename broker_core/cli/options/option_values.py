"""The values of options and arguments, parsed: namespace, mode, properties, address; the error of unusable ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.names import Mode, NamespaceName

__all__ = [
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
