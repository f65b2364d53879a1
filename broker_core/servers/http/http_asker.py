"""The asker of an HTTP request, as the transport knows it."""

from __future__ import annotations

from aiohttp import hdrs, web

from broker_core.access import OPERATOR, Asker
from broker_core.servers.http.served_connection import client_of, peer_of

__all__ = ["asker_of", "operator_of"]


def asker_of(request: web.Request) -> Asker:
    """The asker before any authentication: a client without a role."""
    return Asker(
        remote_address=peer_of(request).remote_address,
        client_version=request.headers.get(hdrs.USER_AGENT, "")[:256],
        transport="http",
        connection=client_of(request),
    )


def operator_of(request: web.Request) -> Asker:
    """The operator, asking by the socket of the server's own user."""
    return Asker(
        client_version=request.headers.get(hdrs.USER_AGENT, "")[:256],
        transport=OPERATOR,
        connection=client_of(request),
    )
