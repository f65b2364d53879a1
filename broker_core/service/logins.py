"""Logins by name and password: of users in the catalogue, and of the method ``basic``.

A password is good if a stored credential of the user has it, or if the method ``basic`` takes it. Users that do not
exist take as much work as existing ones, so that nobody learns which names exist.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, Protocol

from broker_core.access import (
    LONGEST_ROLE,
    AuthenticationFailed,
    PasswordThreads,
    Principal,
    bad_password,
    host_of,
    network_of,
)
from broker_core.catalog import ScramRow
from broker_core.errors import BrokerCoreError
from broker_core.kafka.scram import DECOY_USER, HASHES, ScramCredential, decoy_of
from broker_core.service.client_admission import Admission
from broker_core.service.live_sessions import Admitted, LoginAttempt

__all__ = ["Logins", "StoredUsers", "role_of"]

_SCRAM: Final = tuple(HASHES)


class StoredUsers(Protocol):
    """The users of the catalogue, for any thread."""

    def kafka_user(self, name: str, mechanism: str) -> ScramRow | None:
        """Stored user of a name, or ``None``; raises an error of the catalogue."""

    def kafka_users(self) -> Sequence[ScramRow]:
        """All stored users; raises an error of the catalogue."""


class Logins:
    """Verification of the names and passwords of clients.

    ``users`` are the catalogue's; ``None`` before a cluster, which stores none. ``elsewhere``, if given, alone
    verifies a method of authentication and its data, and returns the principal.
    """

    def __init__(
        self,
        admission: Admission,
        users: StoredUsers | None,
        elsewhere: Callable[[str, bytes], Coroutine[Any, Any, Principal]] | None = None,
    ) -> None:
        self.admission = admission
        self._elsewhere = elsewhere
        self._users = users
        if users is not None:
            admission.live.users = users.kafka_users
        self._threads = PasswordThreads[frozenset[bytes]]()
        #: A key of this process alone: it names the passwords under check, and makes decoys if no secret for them is
        #: stored.
        self._key = os.urandom(32)

    def close(self) -> None:
        """Verify nothing any more."""
        self._threads.close()

    async def password(self, attempt: LoginAttempt, user: str, password: bytes) -> Admitted:
        """Let the client with this name and password in; raises what :meth:`Admission.later` does."""
        attempt.method, attempt.data = "basic", user.encode() + b":" + password
        attempt.needs_proof = True
        if self._elsewhere is not None:
            return await self._verified_elsewhere(attempt, "basic")
        return await self.admission.later(attempt, partial(self._with_password, attempt, user, password))

    async def token(self, attempt: LoginAttempt, token: bytes) -> Admitted:
        """Let the client with this token in; raises what :meth:`Admission.later` does."""
        attempt.method, attempt.data, attempt.needs_proof = "token", token, True
        if self._elsewhere is not None:
            return await self._verified_elsewhere(attempt, "token")
        return await self.admission.later(attempt)

    async def _verified_elsewhere(self, attempt: LoginAttempt, method: str) -> Admitted:
        assert self._elsewhere is not None
        attempt.elsewhere = True
        return await self.admission.later(attempt, partial(self._elsewhere, method, attempt.data))

    async def credential(self, attempt: LoginAttempt, mechanism: str, user: str) -> ScramCredential:
        """The stored credential of a user for a mechanism of SCRAM, or a decoy.

        Raises :exc:`AuthenticationFailed`, not counted yet.
        """
        async with self.admission.turn(attempt):
            _check_name(user)
            users = self._users
            if users is None:
                return decoy_of(mechanism, user, self._key)
            [stored] = await asyncio.to_thread(self._stored, users, user, (mechanism,))
            attempt.stored = frozenset({stored.stored_key})
            return stored

    async def _with_password(self, attempt: LoginAttempt, user: str, password: bytes) -> Principal:
        _check_name(user)
        if self._users is not None:
            host = network_of(host_of(attempt.peer.remote_address))
            work = partial(self._proven, self._users, user, password)
            attempt.stored = await self._threads.run(host, self._name(user.encode(), password), work)
            if attempt.stored:
                return role_of(user)
        authenticator = self.admission.authenticator
        if ":" in user or not authenticator.verifies("basic"):  # the rest would be of the password
            raise bad_password()
        made = authenticator.authenticate(attempt.method, attempt.data, attempt.peer)
        return made if isinstance(made, Principal) else await made

    def _proven(self, users: StoredUsers, user: str, password: bytes) -> frozenset[bytes]:
        """The stored keys of the user that have this password, by all mechanisms: long work, for a thread."""
        return frozenset(
            stored.stored_key for stored in self._stored(users, user, _SCRAM) if stored.has_password(password)
        )

    def _name(self, user: bytes, password: bytes) -> bytes:
        """A name of this check, which reveals nothing of the password."""
        data = b"%d:%b%b" % (len(user), user, password)
        return hashlib.blake2b(data, key=self._key, digest_size=32).digest()

    def _stored(self, users: StoredUsers, user: str, mechanisms: tuple[str, ...]) -> list[ScramCredential]:
        """The credential of a user for each mechanism, or a decoy."""
        try:
            secret = users.kafka_user(DECOY_USER, "")
            rows = [(mechanism, users.kafka_user(user, mechanism)) for mechanism in mechanisms]
        except BrokerCoreError as error:
            raise AuthenticationFailed("catalog", str(error)) from None
        key = self._key if secret is None else secret.salt
        return [
            decoy_of(mechanism, user, key) if row is None else _credential(mechanism, row)
            for mechanism, row in rows
        ]


def _credential(mechanism: str, row: ScramRow) -> ScramCredential:
    return ScramCredential(mechanism, row.iterations, row.salt, row.stored_key, row.server_key)


def _check_name(user: str) -> None:
    if not user.strip() or len(user) > LONGEST_ROLE:
        raise bad_password()


def role_of(user: str) -> Principal:
    """The principal of a user that has proven its name; raises :exc:`AuthenticationFailed`."""
    try:
        return Principal(user)
    except ValueError as error:
        raise AuthenticationFailed("bad_role", f"the user is no role: {error}") from None
