"""The peer of a connection: the facts that a transport knows of a client before its authentication."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from broker_core.immutable.sealed import seal_value

__all__ = ["Peer"]


@dataclass(frozen=True, slots=True, init=False)
class Peer:
    """A client before its authentication; immutable.

    ``remote_address`` is ``HOST:PORT``, with brackets around an IPv6 host; ``transport`` is ``"pulsar"`` or ``"http"``;
    ``is_tls`` says whether the connection is encrypted. ``common_name`` is the name in the client's certificate, which
    TLS has verified; ``None`` without a verified certificate.
    """

    remote_address: str
    transport: str
    is_tls: bool = False
    common_name: str | None = None

    def __new__(
        cls, remote_address: str, transport: str, is_tls: bool = False, common_name: str | None = None
    ) -> Self:
        peer = object.__new__(cls)
        _put_address(peer, remote_address)
        _put_transport(peer, transport)
        _put_is_tls(peer, is_tls)
        _put_common_name(peer, common_name)
        return peer


_put_address, _put_transport, _put_is_tls, _put_common_name = seal_value(Peer)
