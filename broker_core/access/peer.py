"""The peer of a connection: the facts that a transport knows of a client before its authentication."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from broker_core.immutable import value_maker

__all__ = ["Peer"]


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True, init=False)
class Peer:
    """A client before its authentication; immutable.

    ``remote_address`` is ``HOST:PORT``, with brackets around an IPv6 host; ``transport`` is ``"pulsar"`` or ``"http"``;
    ``is_tls`` says whether the connection is encrypted. ``common_name`` is the name in the client's certificate, which
    TLS has verified; ``None`` without a verified certificate. ``is_trusted`` says whether the authority of the
    certificate is still one that clients may have.
    """

    remote_address: str
    transport: str
    is_tls: bool = False
    common_name: str | None = None
    is_trusted: Callable[[], bool] = field(default=_always, compare=False, repr=False)

    def __new__(
        cls,
        remote_address: str,
        transport: str,
        is_tls: bool = False,
        common_name: str | None = None,
        is_trusted: Callable[[], bool] = _always,
    ) -> Self:
        peer: Self = _make_peer(cls, remote_address, transport, is_tls, common_name, is_trusted)
        return peer


_make_peer = value_maker(Peer)
