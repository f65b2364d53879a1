"""The asker of a request: its role, principal, address and client, as the transport knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from broker_core.access.remote_address import host_of
from broker_core.immutable import seal_value

__all__ = ["OPERATOR", "Asker"]

#: The transport of the operator's own socket, which no client reaches: an asker by it is a super role.
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
        asker = object.__new__(cls)
        _put_role(asker, role)
        _put_principal(asker, original_principal)
        _put_address(asker, remote_address)
        _put_client_version(asker, client_version)
        _put_protocol_version(asker, protocol_version)
        _put_transport(asker, transport)
        _put_connection(asker, _Connection() if connection is None else connection)
        return asker

    @property
    def host(self) -> str:
        """``remote_address`` without the port, which differs with each connection of a client."""
        return host_of(self.remote_address)


# One stands for all that its connection asks, whichever plugins hear of it.
(
    _put_role,
    _put_principal,
    _put_address,
    _put_client_version,
    _put_protocol_version,
    _put_transport,
    _put_connection,
) = seal_value(Asker)
