"""The checks of clients' credentials, for all connections of a server: in turns, counted, and slowed where they fail.

A check at once takes a few hundred microseconds (a signature of RSA), so that thousands of clients that come back at
the same time share the turns of the event loop. A check that takes longer (bcrypt, a plugin) is awaited. One address
has few of these under way, and one that fails again and again has one: so it cannot hold up the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

import structlog

from broker_core.access.authentication import AuthenticationFailed, Authenticator
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.access.remote_address import host_of
from broker_core.access.sessions import Sessions
from broker_core.concurrency.loop_turn import has_time, loop_turn
from broker_core.metrics.metrics import Metrics
from broker_core.servers.admission import FailurePace
from broker_core.servers.authentication.expiries import Expiries

__all__ = ["CredentialChecks"]

_log = structlog.get_logger(__name__)

#: Failures that are this server's own: nobody is slowed for them.
_OWN: Final = frozenset({"overloaded", "plugin", "catalog"})
#: Checks of one address that are awaited at a time.
_AT_ONCE: Final = 32
#: Characters of a name in the log that a client only claims.
_SHOWN: Final = 256


class _Lane:
    """The checks of one address that are awaited; ``one_by_one`` where it fails."""

    __slots__ = ("__weakref__", "one_by_one", "places")

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(_AT_ONCE)
        self.one_by_one = asyncio.Lock()


@dataclass(frozen=True, slots=True)
class CredentialChecks:
    """``transport`` is the label of the metrics, ``pace`` that of failures. ``sessions`` keeps the credentials of
    connections, where something needs them.
    """

    transport: str
    authenticator: Authenticator
    metrics: Metrics
    pace: FailurePace
    expiries: Expiries
    sessions: Sessions | None = None
    _lanes: WeakValueDictionary[str, _Lane] = field(default_factory=WeakValueDictionary, init=False)

    def check_now(self, method: str | None, data: bytes, peer: Peer) -> Principal | None:
        """The principal, or ``None`` where :meth:`check` has to be awaited: it takes long, or this turn has no time.

        Raises :exc:`AuthenticationFailed`.
        """
        return self.authenticator.authenticate_now(method, data, peer) if has_time() else None

    async def check(self, method: str | None, data: bytes, peer: Peer) -> Principal:
        """The principal; raises :exc:`AuthenticationFailed`."""
        await loop_turn().time()
        principal = self.authenticator.authenticate_now(method, data, peer)
        if principal is not None:
            return principal
        async with self.turn(peer):
            return await self.authenticator.authenticate(method, data, peer)

    @asynccontextmanager
    async def turn(self, peer: Peer) -> AsyncIterator[None]:
        """A place among the checks of a client's address that are awaited."""
        host = host_of(peer.remote_address)
        lane = self._lanes.get(host)
        if lane is None:
            lane = self._lanes[host] = _Lane()
        if not self.pace.delay(host):
            async with lane.places:
                yield
        else:
            async with lane.one_by_one, lane.places:
                yield

    def succeeded(self, principal: Principal, peer: Peer, client: str) -> None:
        """A client was authenticated, or let in without credentials, which operators want to see."""
        if principal is self.authenticator.anonymous:
            self.metrics.authentication(self.transport, "anonymous")
            _log.info("client without credentials", peer=peer.remote_address, client=client)
        else:
            self.metrics.authentication(self.transport, "ok")

    def renewed(self) -> None:
        """A client has renewed its credentials."""
        self.metrics.authentication(self.transport, "renewed")

    def failed(self, error: AuthenticationFailed, peer: Peer, client: str) -> float:
        """A client's credentials were refused: seconds until it is told, more if its address fails often."""
        _log.warning(
            "authentication failed",
            peer=peer.remote_address,
            client=client,
            reason=error.reason,
            detail=error.detail,
        )
        return self._counted(error.reason, peer)

    def wrong_roles(self, role: str, original_principal: str | None, peer: Peer, client: str) -> float:
        """A client may not act for the principal that it names: seconds until it is told."""
        _log.warning(
            "client may not act for the principal that it names",
            peer=peer.remote_address,
            client=client,
            reason="invalid_roles",
            role=role,
            original_principal=None if original_principal is None else original_principal[:_SHOWN],
        )
        return self._counted("invalid_roles", peer)

    def other_principal(self, role: str, other: str, peer: Peer, client: str) -> float:
        """A client was one principal, and has renewed its credentials as another: seconds until it is told."""
        values = {"peer": peer.remote_address, "client": client, "role": role, "other": other}
        _log.warning(
            "client renewed its credentials as another principal", reason="other_principal", **values
        )
        return self._counted("other_principal", peer)

    def _counted(self, reason: str, peer: Peer) -> float:
        self.metrics.authentication(self.transport, reason)
        host = host_of(peer.remote_address)
        if reason not in _OWN:
            self.pace.failed(host)
        return self.pace.delay(host)
