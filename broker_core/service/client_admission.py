"""The admission of clients: one check of credentials for all protocols, in turns, counted, and slowed by failures.

A check at once takes a few hundred microseconds (a signature of RSA), so that thousands of clients that come back at
the same time share the turns of the event loop. A check that takes longer (bcrypt, a plugin) is awaited: one address
has few of these under way. An address that fails again and again, over whatever protocols, has one, and waits before
it, so that a client that hangs up early learns nothing either; wrong passwords there do not keep right ones out. Good
credentials that are known at once never wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from weakref import WeakValueDictionary

import structlog

from broker_core.access import (
    AuthenticationFailed,
    Authenticator,
    InvalidRoles,
    Peer,
    Principal,
    Sessions,
    bad_password,
    host_of,
    network_of,
)
from broker_core.concurrency import TurnQueue, has_time, loop_turn
from broker_core.errors import BrokerCoreError
from broker_core.metrics import Metrics
from broker_core.service.failure_pace import FailurePace
from broker_core.service.live_sessions import Admitted, LiveSessions, LoginAttempt
from broker_core.service.quotas import Quotas
from broker_core.settings import QuotaSettings

__all__ = ["Admission", "OtherName", "OtherPrincipal"]

_log = structlog.get_logger(__name__)

#: Failures that are this server's own: nobody is slowed for them.
_OWN: Final = frozenset({"overloaded", "plugin", "catalog"})
#: Checks of one address that are awaited at a time.
_AT_ONCE: Final = 32
#: Characters of a name in the log that a client only claims.
_SHOWN: Final = 256


class OtherName(AuthenticationFailed):
    """A client has proven another name than the one it wants to act as."""

    def __init__(self) -> None:
        super().__init__("bad_role", "another authorization id")


class OtherPrincipal(BrokerCoreError):
    """A client was the principal ``role``, and has renewed its credentials as ``other``."""

    def __init__(self, role: str, other: str) -> None:
        super().__init__(f"{role!r} renewed its credentials as {other!r}")
        self.role = role
        self.other = other


_Refusal: TypeAlias = AuthenticationFailed | InvalidRoles | OtherPrincipal


@dataclass(slots=True, eq=False)
class _Check:
    """A check that waits for the one before it; ``key`` is the name that the client claims."""

    key: Hashable
    begins: asyncio.Future[None]
    turn: tuple[int, int] = (0, 0)


class _Lane:
    """The checks of one address that are awaited."""

    __slots__ = ("__weakref__", "_arrived", "_is_busy", "_is_newest_next", "_waiting", "places")

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(_AT_ONCE)
        self._waiting: TurnQueue[_Check] = TurnQueue()
        self._arrived: dict[_Check, None] = {}  # the waiting checks, the newest last
        self._is_busy = False
        self._is_newest_next = True

    @asynccontextmanager
    async def one_by_one(self, name: bytes) -> AsyncIterator[None]:
        """The turn of a check of a failing address: alternately the newest check, and the next one by name.

        Names wait for one check of each other name, so that many checks of few names do not hold up other names. Of
        many names nobody knows the right one: the newest is of a client that is still connected.
        """
        if self._is_busy:
            check = _Check(name, asyncio.get_running_loop().create_future())
            self._waiting.put(check)
            self._arrived[check] = None
            try:
                await check.begins
            except asyncio.CancelledError:
                self._waiting.remove(check)
                self._arrived.pop(check, None)
                if not check.begins.cancelled():  # its turn has come
                    self._begin_next()
                raise
        self._is_busy = True
        try:
            yield
        finally:
            self._begin_next()

    def _begin_next(self) -> None:
        waiting = self._waiting
        while waiting.items:
            if self._is_newest_next:
                check, _ = self._arrived.popitem()
                waiting.remove(check)
            else:
                check = waiting.items[0]
                waiting.take(check)
                del self._arrived[check]
            if not check.begins.done():  # else its client has just gone
                self._is_newest_next = not self._is_newest_next
                check.begins.set_result(None)
                return
        self._is_busy = False


class Admission:
    """The admission of all clients of a broker. ``sessions`` keeps the credentials of connections, if something needs
    them; ``quotas`` bound what clients may ask once they are in.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        metrics: Metrics,
        sessions: Sessions | None = None,
        quotas: Iterable[QuotaSettings] = (),
    ) -> None:
        self.authenticator = authenticator
        self.sessions = sessions
        self.live = LiveSessions(authenticator)
        self.quotas = Quotas(quotas, metrics)
        #: How long an address waits that fails to get in again and again.
        self.pace = FailurePace()
        self._metrics = metrics
        self._lanes: WeakValueDictionary[str, _Lane] = WeakValueDictionary()

    def now(self, attempt: LoginAttempt) -> Admitted | None:
        """Let a client in, or ``None`` if :meth:`later` has to be awaited: it takes long, or this turn has no time.

        Raises :exc:`AuthenticationFailed`, :exc:`InvalidRoles` and :exc:`OtherPrincipal`.
        """
        if not has_time():
            return None
        try:
            return self._let_in_now(attempt)
        except (AuthenticationFailed, InvalidRoles, OtherPrincipal) as error:
            if self._slows(attempt, error):
                return None  # it is refused later, and counted then
            self._count(attempt, error)
            raise

    async def later(
        self,
        attempt: LoginAttempt,
        verify: Callable[[], Principal | Coroutine[Any, Any, Principal]] | None = None,
    ) -> Admitted:
        """Let a client in, by its credentials, or as the principal that ``verify`` gives: one that it has proven to be,
        in its turn, or one that takes a while.

        Raises what :meth:`now` does.
        """
        try:
            await loop_turn().time()
            made = self._verified(attempt) if verify is None else verify()
            if not isinstance(made, Principal):
                with closing(made):
                    async with self.turn(attempt):
                        made = await made
            return self._let_in(attempt, made)
        except (AuthenticationFailed, InvalidRoles, OtherPrincipal) as error:
            await self.refuse(attempt, error)
            raise

    def by_certificate(self, peer: Peer) -> Admitted | None:
        """Let a client in by the certificate that TLS has verified, before it sends anything; ``None``: that gives no
        role.

        The client may still bring credentials.
        """
        attempt = LoginAttempt(peer, "", "tls")
        try:
            return self._let_in_now(attempt)
        except (AuthenticationFailed, InvalidRoles) as error:
            self._count(attempt, error)
            return None

    def without_credentials(self, peer: Peer) -> Admitted | None:
        """Let a client in without credentials, if it has a role then."""
        anonymous = self.authenticator.anonymous
        if anonymous is None:
            return None
        return self._let_in(LoginAttempt(peer, "", generation=self.live.generation), anonymous)

    async def refuse(self, attempt: LoginAttempt, error: _Refusal) -> None:
        """Count a failure, and wait if the address fails again and again; each attempt waits once."""
        self._count(attempt, error)
        if self._slows(attempt, error):
            await self._wait(attempt)

    @asynccontextmanager
    async def turn(self, attempt: LoginAttempt) -> AsyncIterator[None]:
        """A place among the awaited checks of a client's address."""
        attempt.generation = self.live.generation
        network = _network(attempt)
        lane = self._lanes.get(network)
        if lane is None:
            lane = self._lanes[network] = _Lane()
        if not self.pace.delay(network):
            async with lane.places:
                yield
        else:
            await self._wait(attempt)
            async with lane.one_by_one(_name(attempt)), lane.places:
                yield

    def close(self) -> None:
        """End no session any more."""
        self.live.close()

    def _verified(self, attempt: LoginAttempt) -> Principal | Coroutine[Any, Any, Principal]:
        attempt.generation = self.live.generation
        return self.authenticator.authenticate(attempt.method, attempt.data, attempt.peer)

    def _let_in_now(self, attempt: LoginAttempt) -> Admitted | None:
        made = self._verified(attempt)
        if isinstance(made, Principal):
            return self._let_in(attempt, made)
        made.close()
        return None

    def _let_in(self, attempt: LoginAttempt, principal: Principal) -> Admitted:
        peer, former = attempt.peer, attempt.former
        is_anonymous = principal is self.authenticator.anonymous
        if is_anonymous and attempt.needs_proof:
            raise bad_password()
        if attempt.name and attempt.name != principal.role:
            raise OtherName
        if former is not None:
            if former.role != principal.role:
                raise OtherPrincipal(former.role, principal.role)
            self._metrics.authentication(peer.transport, "renewed")
            return Admitted(principal, principal.role, attempt.original_principal, attempt)
        role, original = self.authenticator.identity(
            principal, original_principal=attempt.original_principal, proxy_version=attempt.proxy_version
        )
        self._metrics.authentication(peer.transport, "anonymous" if is_anonymous else "ok")
        if is_anonymous and peer.transport != "http":  # which would say so of each request
            _log.info("client without credentials", peer=peer.remote_address, client=attempt.client)
        return Admitted(principal, role, original, attempt)

    def _count(self, attempt: LoginAttempt, error: _Refusal) -> None:
        """Log, count and remember a failure."""
        values: dict[str, object] = {"peer": attempt.peer.remote_address, "client": attempt.client}
        if isinstance(error, AuthenticationFailed):
            event, reason = "authentication failed", error.reason
            values["detail"] = error.detail
        elif isinstance(error, OtherPrincipal):
            event, reason = "client renewed its credentials as another principal", "other_principal"
            values |= {"role": error.role, "other": error.other}
        else:
            event, reason = "client may not act for the principal that it names", "invalid_roles"
            original = attempt.original_principal
            values["role"] = error.role
            values["original_principal"] = None if original is None else original[:_SHOWN]
        _log.warning(event, reason=reason, **values)
        self._metrics.authentication(attempt.peer.transport, reason)
        if _is_attempt(attempt, error):
            self.pace.failed(_network(attempt))

    def _slows(self, attempt: LoginAttempt, error: _Refusal) -> bool:
        return _is_attempt(attempt, error) and self.pace.delay(_network(attempt)) > 0

    async def _wait(self, attempt: LoginAttempt) -> None:
        if not attempt.has_waited:
            attempt.has_waited = True
            await asyncio.sleep(self.pace.delay(_network(attempt)))


def _network(attempt: LoginAttempt) -> str:
    return network_of(host_of(attempt.peer.remote_address))


def _name(attempt: LoginAttempt) -> bytes:
    """The name that a client claims with its password; all other credentials share one name."""
    return attempt.data.partition(b":")[0] if attempt.method == "basic" else b""


def _is_attempt(attempt: LoginAttempt, error: _Refusal) -> bool:
    """Whether a failure counts against the address: not if it is this server's own, or an HTTP request without
    credentials, whose client waits to be asked for them.
    """
    if not isinstance(error, AuthenticationFailed):
        return True
    return error.reason not in _OWN and (error.reason != "no_credentials" or attempt.peer.transport != "http")
