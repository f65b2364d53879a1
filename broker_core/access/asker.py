"""The asker of a request, as the transport knows it: its address, its question to a gate, and a gate's refusal.

A gate (``broker_core_authorize``) is asked about an :class:`Access`: an asker, an action and its object.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Self

from broker_core.errors import Cause
from broker_core.immutable import value_maker
from broker_core.names import NamespaceName, TopicName

__all__ = [
    "ACTIONS",
    "OPERATOR",
    "Access",
    "Asker",
    "Refused",
    "host_of",
    "is_within",
    "network_of",
    "same_address",
]

#: The transport name of the operator's own socket, which no client reaches: its askers have a super role.
OPERATOR: Final = "operator"


class _Connection:
    """The identity of a connection; it takes weak references, for data that is kept as long as the connection lives."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True, init=False)
class Asker:
    """The client that asks, as the transport knows it. ``role`` is authenticated; the client's version is only claimed.

    ``remote_address`` is ``HOST:PORT``, with brackets around an IPv6 host. ``connection`` is one object for all that
    one connection asks: turns for threads and permits are taken per connection. It takes weak references.
    """

    role: str | None = None
    original_principal: str | None = None
    remote_address: str = ""
    client_version: str = ""
    protocol_version: int = 0
    transport: str = "pulsar"
    connection: object = field(default_factory=_Connection, repr=False, compare=False)

    def __new__(
        cls,
        role: str | None = None,
        original_principal: str | None = None,
        remote_address: str = "",
        client_version: str = "",
        protocol_version: int = 0,
        transport: str = "pulsar",
        connection: object = None,
    ) -> Self:
        asker: Self = _make_asker(
            cls,
            role,
            original_principal,
            remote_address,
            client_version,
            protocol_version,
            transport,
            _Connection() if connection is None else connection,
        )
        return asker

    @property
    def host(self) -> str:
        """``remote_address`` without the port, which differs with each connection of a client."""
        return host_of(self.remote_address)


# One stands for all that its connection asks, whichever plugins hear of it.
_make_asker = value_maker(Asker)


#: The actions of clients, and their commands. Newer servers have new ones: a gate refuses an unknown action, or lets it
#: pass, as its author decides.
ACTIONS: Final = {
    "list": "GET_TOPICS_OF_NAMESPACE, the same over HTTP, and each namespace of `GET /questions`",
    "describe": "PARTITIONED_METADATA",
    "lookup": "LOOKUP",
    "schema": "GET_SCHEMA",
    "put_schema": "GET_OR_CREATE_SCHEMA",
    "admin": "over HTTP: changes of topics and what else the rules call `admin`",
}


@dataclass(frozen=True, slots=True, init=False)
class Access:
    """A client wants to do something with a namespace, or with one topic of it; immutable.

    ``action`` is one of ``"list"``, ``"describe"``, ``"lookup"``, ``"schema"``, ``"put_schema"`` and ``"admin"``;
    ``topic`` is ``None`` for ``"list"``, and for an action on the whole namespace. For an import of topics, gates are
    asked about the namespace first, then about each topic.
    """

    action: str
    namespace: NamespaceName
    topic: TopicName | None
    asker: Asker

    def __new__(cls, action: str, namespace: NamespaceName, topic: TopicName | None, asker: Asker) -> Self:
        access: Self = _make_access(cls, action, namespace, topic, asker)
        return access


# All gates get the same object.
_make_access = value_maker(Access)


@dataclass(frozen=True, slots=True, init=False)
class Refused:
    """A refusal by a gate. ``message`` is for the client, ``cause`` decides its code.

    Raises :exc:`TypeError` for a message that is no string and a cause that is no
    :class:`~broker_core.errors.error_codes.Cause`, :exc:`ValueError` for an empty message.
    """

    message: str
    cause: Cause = Cause.DENIED

    def __new__(cls, message: str, cause: Cause = Cause.DENIED) -> Self:
        if not isinstance(message, str):
            raise TypeError(
                f"message must be a string, the text for the client, not {type(message).__name__}"
            )
        # The characters of a subclass of str, whose own methods may change.
        message = str.__str__(message)
        if not message:
            raise ValueError("message must say to the client what is refused, or why: it is empty")
        if not isinstance(cause, Cause):
            raise TypeError(
                f"cause must be a broker_core.Cause, such as Cause.DENIED, not {type(cause).__name__}"
            )
        refused: Self = _make_refused(cls, message, cause)
        return refused


_make_refused = value_maker(Refused)


#: The hexadecimal digits of an IPv6 address that stand for one network of /64: a client has all of its addresses.
_NETWORK_DIGITS: Final = 16


def host_of(remote_address: str) -> str:
    """The host of ``HOST:PORT`` without brackets; text without a port (a path, an IPv6 address alone) as it is."""
    host, _, port = remote_address.rpartition(":")
    if not (port.isascii() and port.isdigit()) or (":" in host and not host.startswith("[")):
        return remote_address
    return host.removeprefix("[").removesuffix("]")


def same_address(host: str) -> str:
    """One text for one address: an IPv4 address mapped into IPv6 is the IPv4 address, and a zone does not count."""
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)


def is_within(host: str, networks: Iterable[IPv4Network | IPv6Network]) -> bool:
    """Whether an address is in one of some networks; other text, such as the path of a socket, is in none."""
    try:
        address = ip_address(same_address(host))
    except ValueError:
        return False
    return any(address in network for network in networks)


def network_of(host: str) -> str:
    """One text for all addresses that one client may have: a network of /64 in IPv6."""
    address = same_address(host)
    if ":" not in address:
        return address
    try:
        return IPv6Address(address).exploded.replace(":", "")[:_NETWORK_DIGITS]
    except ValueError:
        return address
