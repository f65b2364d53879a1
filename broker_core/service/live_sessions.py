"""Sessions of authenticated clients: each ends when its credentials end, or are no longer good.

Credentials are no longer good if their user was removed or has another password, if their key or authority was removed,
or if the settings would not give them the same role. One sweep for all protocols checks that, if anything has changed
since the last one; any process may change users of the catalogue.

Credentials end by the wall clock: a due end is called back within a second, also after the clock was moved. Thousands
may end at the same time, and take turns with everything else on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, TypeAlias

import structlog

from broker_core.access import Authenticator, Grounds, InvalidRoles, Peer, Principal
from broker_core.catalog import ScramRow
from broker_core.concurrency import has_time, loop_turn

__all__ = ["Admitted", "Ended", "Expiries", "Expiry", "LiveSession", "LiveSessions", "LoginAttempt"]

_log = structlog.get_logger(__name__)

#: Seconds between two sweeps. A client that can renew its credentials has 30 seconds for it besides.
_PERIOD: Final = 10.0


class Ended(NamedTuple):
    """The reason why a session is over: the label of the metrics, and the text of the log."""

    reason: str
    event: str


_EXPIRED: Final = Ended("expired", "credentials of the client have expired")
_REVOKED: Final = Ended("revoked", "credentials of the client are good no more")


@dataclass(slots=True)
class LoginAttempt:
    """One attempt of a client to log in: ``method`` and ``data`` are its credentials, ``client`` what it calls itself.

    ``original_principal`` is the principal that a proxy says it acts for, ``name`` the name that the client wants to
    have. With ``needs_proof`` it does not get the role of clients without credentials. ``former`` is the principal of a
    client that renews its credentials.
    """

    peer: Peer
    client: str
    method: str | None = None
    data: bytes = field(default=b"", repr=False)
    original_principal: str | None = None
    proxy_version: str | None = None
    name: str = ""
    needs_proof: bool = False
    former: Principal | None = None
    has_waited: bool = False
    #: The keys of the catalogue's user that the client has proven to know.
    stored: frozenset[bytes] = field(default=frozenset(), repr=False)
    #: The generation of the live sessions before its credentials were looked at.
    generation: int = -1
    #: Whether the cluster behind this gateway has verified the credentials, and not this server.
    elsewhere: bool = False


class Admitted(NamedTuple):
    """The identity of a client: its principal, and the role and the original principal of its requests.

    ``attempt`` is the attempt that let it in.
    """

    principal: Principal
    role: str
    original_principal: str | None
    attempt: LoginAttempt


_Keys: TypeAlias = Mapping[str, frozenset[bytes]]


class LiveSession:
    """One session. ``ended`` is called once, unless it is cancelled before."""

    __slots__ = (
        "_ended",
        "_expiry",
        "_sessions",
        "grounds",
        "is_still_valid",
        "original_principal",
        "proxy_version",
        "stored",
    )

    def __init__(
        self,
        sessions: dict[LiveSession, None],
        admitted: Admitted | None,
        ended: Callable[[Ended], object],
        is_still_valid: Callable[[], bool] | None,
    ) -> None:
        #: Whether clients are still let in as this one was, if its protocol decides that too.
        self.is_still_valid = is_still_valid
        self._sessions = sessions
        self._ended = ended
        self._expiry: Expiry | None = None
        #: ``None`` for a client that nobody here has authenticated.
        self.grounds: Grounds | None = None
        #: The keys of the catalogue's user that the client has proven to know, if it is one.
        self.stored: frozenset[bytes] = frozenset()
        self.original_principal: str | None = None
        self.proxy_version: str | None = None
        if admitted is not None:
            attempt = admitted.attempt
            self.stored = attempt.stored
            self.original_principal, self.proxy_version = attempt.original_principal, attempt.proxy_version
        sessions[self] = None

    @property
    def is_over(self) -> bool:
        """Whether the session has ended, or was cancelled."""
        return self not in self._sessions

    def expires(self, expiries: Expiries, at: float) -> None:
        """Let the session end with its credentials, ``at`` a time."""
        self._expiry = expiries.call_at(at, self._has_expired)

    def cancel(self) -> None:
        """End it quietly: the connection is over, or has other credentials. May be called again."""
        self._sessions.pop(self, None)
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def revoke(self) -> None:
        """End it, since its credentials are no longer good."""
        self.cancel()
        self._ended(_REVOKED)

    def _has_expired(self) -> None:
        self.cancel()
        self._ended(_EXPIRED)


class LiveSessions:
    """The sessions of all connections of a broker, on its event loop. ``users`` gives the users of the catalogue, by a
    thread, if there are some.
    """

    def __init__(self, authenticator: Authenticator) -> None:
        self.expiries = Expiries()
        self.users: Callable[[], Iterable[ScramRow]] | None = None
        self._authenticator = authenticator
        self._sessions: dict[LiveSession, None] = {}
        self._keys: _Keys | None = None  # that of the catalogue's users, once they were read
        self._keys_changed = 0
        self._swept = self.generation  # by which all sessions were looked at
        self._is_due = False  # whether a session has begun that has to be looked at again
        self._unreadable = False

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def generation(self) -> int:
        """The number of changes that may have made good credentials bad."""
        return self._authenticator.generation + self._keys_changed

    def begin(
        self,
        admitted: Admitted | None,
        ended: Callable[[Ended], object],
        is_still_valid: Callable[[], bool] | None = None,
    ) -> LiveSession:
        """Begin the session of a client that was let in just now, or (``None``) connected without authentication.

        ``is_still_valid`` says whether its protocol still lets clients in that way: :meth:`look_again` makes the
        sweep call it.
        """
        session = LiveSession(self._sessions, admitted, ended, is_still_valid)
        if is_still_valid is not None and not is_still_valid():
            self._is_due = True
        if admitted is None:
            return session
        attempt, principal = admitted.attempt, admitted.principal
        is_known = attempt.generation == self.generation
        if session.stored:
            session.grounds = Grounds(principal.role)
            is_known = self._holds(principal.role, session.stored)
        elif not attempt.elsewhere:
            authenticator = self._authenticator
            session.grounds = authenticator.grounds(attempt.method, attempt.data, attempt.peer, principal)
        if principal.expires_at is not None:
            session.expires(self.expiries, principal.expires_at)
        if not is_known:
            self._is_due = True  # its credentials may already have ended
        return session

    def look_again(self) -> None:
        """Sweep soon: a protocol lets clients in otherwise than before."""
        self._is_due = True

    async def watch(self) -> None:
        """Sweep again and again, until cancelled. Whatever fails is logged, and tried again."""
        while True:
            await asyncio.sleep(_PERIOD)
            try:
                await self.sweep()
            except Exception:  # noqa: BLE001 - without it nobody's credentials would be looked at any more
                self._is_due = True
                _log.exception("looking for revoked credentials has failed: it is done again")

    async def sweep(self) -> None:
        """End the sessions whose credentials are no longer good."""
        if any(session.stored for session in self._sessions):
            await self._read_keys()
        generation = self.generation
        if generation == self._swept and not self._is_due:
            return
        self._swept, self._is_due = generation, False
        for session in list(self._sessions):
            if not has_time():
                await loop_turn().time()
            if not session.is_over and not self._is_good(session):
                session.revoke()

    def close(self) -> None:
        """End no session any more."""
        self._sessions.clear()
        self.expiries.close()

    def _is_good(self, session: LiveSession) -> bool:
        """Whether a client would still be let in by its credentials, with the same role."""
        grounds, authenticator = session.grounds, self._authenticator
        if session.is_still_valid is not None and not session.is_still_valid():
            return False
        if grounds is None:
            return session.is_still_valid is not None or not authenticator.enabled
        if session.stored:
            if not self._holds(grounds.role, session.stored):
                return False
        elif not authenticator.upholds(grounds):
            return False
        try:
            authenticator.identity(
                Principal(grounds.role),
                original_principal=session.original_principal,
                proxy_version=session.proxy_version,
            )
        except InvalidRoles:
            return False
        return True

    def _holds(self, user: str, stored: frozenset[bytes]) -> bool:
        """Whether the catalogue has one of these keys of a user, as far as it is known."""
        return self._keys is None or not stored.isdisjoint(self._keys.get(user, ()))

    async def _read_keys(self) -> None:
        """Read the users of the catalogue; if they cannot be read, the former ones stay."""
        assert self.users is not None
        try:
            keys = await asyncio.to_thread(_keys_of, self.users)
        except Exception as error:  # noqa: BLE001 - whatever it is, the sessions of others are looked at
            if not self._unreadable:
                _log.warning(
                    "the users of the catalogue cannot be read: no session of theirs is ended",
                    error=str(error),
                )
            self._unreadable = True
            return
        self._unreadable = False
        if keys != self._keys:
            self._keys = keys
            self._keys_changed += 1


def _keys_of(users: Callable[[], Iterable[ScramRow]]) -> _Keys:
    found: dict[str, frozenset[bytes]] = {}
    for row in users():
        found[row.name] = found.get(row.name, frozenset()) | {row.stored_key}
    return found


#: Seconds between two looks at the clock. It may be moved at any time, so that no timer can wait for one of its times.
_LOOK: Final = 1.0
#: Seconds that due callbacks may take in one turn of the event loop.
_SLICE: Final = 0.002
#: Cancelled callbacks are kept until they are half of all, if there are more than so many.
_FEW: Final = 64


class Expiry:
    """One end: ``at`` in seconds since 1970."""

    __slots__ = ("_expiries", "at", "expired")

    def __init__(self, expiries: Expiries, at: float, expired: Callable[[], object]) -> None:
        self._expiries = expiries
        self.at = at
        self.expired: Callable[[], object] | None = expired

    def cancel(self) -> None:
        """Call nobody back any more. May be called again."""
        if self.expired is not None:
            self.expired = None
            self._expiries.one_less()

    def __lt__(self, other: Expiry) -> bool:
        return self.at < other.at


class Expiries:
    """The ends of one server, for the thread of its event loop. ``clock`` is the wall clock, in seconds since 1970."""

    __slots__ = ("_cancelled", "_clock", "_heap", "_timer", "_under_way")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._heap: list[Expiry] = []
        self._cancelled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._under_way = False

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def call_at(self, at: float, expired: Callable[[], object]) -> Expiry:
        """Call ``expired`` when the wall clock has reached ``at``."""
        expiry = Expiry(self, at, expired)
        heappush(self._heap, expiry)
        if self._timer is None and not self._under_way:
            self._look_later()
        return expiry

    def close(self) -> None:
        """Call nobody back any more."""
        for expiry in self._heap:
            expiry.expired = None
        self._heap.clear()
        self._cancelled = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def one_less(self) -> None:
        """Note that a waiting end is cancelled."""
        self._cancelled += 1
        if self._cancelled > _FEW and 2 * self._cancelled > len(self._heap):
            self._heap = [expiry for expiry in self._heap if expiry.expired is not None]
            heapify(self._heap)
            self._cancelled = 0

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _look(self) -> None:
        self._timer = None
        self._under_way = False
        try:
            self._call_due()
        finally:  # whatever one of them fails with, the others have their time
            if self._heap and not self._under_way:
                self._look_later()

    def _call_due(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + _SLICE
        while self._heap and (self._heap[0].expired is None or self._heap[0].at <= self._clock()):
            expiry = heappop(self._heap)
            expired, expiry.expired = expiry.expired, None
            if expired is None:
                self._cancelled -= 1
                continue
            expired()
            if loop.time() >= until:
                self._under_way = True
                loop_turn().call_next(self._look)
                return
