"""The checks of clients' credentials, for all connections of a server: in turns, counted, and slowed where they fail.

A check at once takes a few hundred microseconds (a signature of RSA), so that thousands of clients that come back at
the same time share the turns of the event loop. A check that takes longer (bcrypt, a plugin) is awaited. One address
has few of these under way, and one that fails again and again has one: so it cannot hold up the others.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

import structlog

from broker_core.access.authentication import AuthenticationFailed, Authenticator, InvalidRoles
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.access.remote_address import host_of
from broker_core.access.sessions import Sessions
from broker_core.concurrency.loop_turn import has_time, loop_turn
from broker_core.errors import ServerError
from broker_core.metrics.metrics import Metrics
from broker_core.servers.admission import FailurePace
from broker_core.servers.connection import Closing
from broker_core.servers.pulsar.expiries import Expiries
from broker_core.wire.pulsar import commands

__all__ = ["CredentialChecks"]

_log = structlog.get_logger(__name__)

#: What a client reads, whatever the reason. docs/reference/pulsar-behaviour.md#authentication
_FAILED: Final = commands.error(
    commands.CONNECTION_REQUEST_ID, ServerError.AuthenticationError, "Failed to authenticate"
)

#: Failures that are this server's own: nobody is slowed for them.
_OWN: Final = frozenset({"overloaded", "plugin"})
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
    """``sessions`` keeps the credentials of connections, where something needs them; ``pace`` is that of failures."""

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
        host = host_of(peer.remote_address)
        lane = self._lanes.get(host)
        if lane is None:
            lane = self._lanes[host] = _Lane()
        if not self.pace.delay(host):
            async with lane.places:
                return await self.authenticator.authenticate(method, data, peer)
        async with lane.one_by_one, lane.places:
            return await self.authenticator.authenticate(method, data, peer)

    def succeeded(self, principal: Principal, peer: Peer, client: str) -> None:
        """A client was authenticated, or let in without credentials, which operators want to see."""
        if principal is self.authenticator.anonymous:
            self.metrics.authentication("pulsar", "anonymous")
            _log.info("client without credentials", peer=peer.remote_address, client=client)
        else:
            self.metrics.authentication("pulsar", "ok")

    def renewed(self) -> None:
        """A client has renewed its credentials."""
        self.metrics.authentication("pulsar", "renewed")

    def failed(self, error: AuthenticationFailed, peer: Peer, client: str) -> Closing:
        """What the client gets whose credentials were refused: an error, later if its address fails often."""
        self._count(error.reason, peer)
        _log.warning(
            "authentication failed",
            peer=peer.remote_address,
            client=client,
            reason=error.reason,
            detail=error.detail,
        )
        return self._closing(_FAILED, peer)

    def wrong_roles(
        self, error: InvalidRoles, role: str, original_principal: str | None, peer: Peer, client: str
    ) -> Closing:
        """What the client gets that may not act for the principal that it names."""
        self._count("invalid_roles", peer)
        _log.warning(
            "client may not act for the principal that it names",
            peer=peer.remote_address,
            client=client,
            reason="invalid_roles",
            role=role,
            original_principal=None if original_principal is None else original_principal[:_SHOWN],
        )
        frame = commands.error(commands.CONNECTION_REQUEST_ID, ServerError.AuthorizationError, error.message)
        return self._closing(frame, peer)

    def other_principal(self, role: str, other: str, peer: Peer, client: str) -> Closing:
        """What the client gets that was one principal, and has renewed its credentials as another: nothing."""
        self._count("other_principal", peer)
        values = {"peer": peer.remote_address, "client": client, "role": role, "other": other}
        _log.warning(
            "client renewed its credentials as another principal", reason="other_principal", **values
        )
        return Closing("authentication", None)

    def _count(self, reason: str, peer: Peer) -> None:
        self.metrics.authentication("pulsar", reason)
        if reason not in _OWN:
            self.pace.failed(host_of(peer.remote_address))

    def _closing(self, frame: bytes, peer: Peer) -> Closing:
        delay = self.pace.delay(host_of(peer.remote_address))
        return Closing("authentication", None, last=frame, delay=delay)
