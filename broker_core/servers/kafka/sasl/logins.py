"""The checks of SASL credentials for all connections of a server: by the catalogue's users and by ``[authentication]``.

A password of PLAIN is good if a stored credential of the user has it, or if the method ``basic`` takes it. Users that
do not exist take the same work as those that do, so that nobody learns who exists.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from functools import partial
from typing import Final, Protocol

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.authentication.password_threads import PasswordThreads
from broker_core.access.peer import Peer
from broker_core.access.principal import LONGEST_ROLE, Principal
from broker_core.access.remote_address import host_of
from broker_core.access.sessions import ClientCredentials
from broker_core.errors import BrokerCoreError
from broker_core.kafka.scram.credentials import DECOY_USER, HASHES, ScramCredential, decoy_of
from broker_core.servers.authentication import CredentialChecks
from broker_core.servers.kafka.sasl.exchange import Accepted
from broker_core.settings import KafkaMechanism

__all__ = ["Logins", "StoredUsers", "role_of"]

_SCRAM: Final = tuple(HASHES)
_BAD: Final = "no such user, or another password"


class StoredUser(Protocol):
    """The stored credential of a user for one mechanism."""

    @property
    def iterations(self) -> int: ...
    @property
    def salt(self) -> bytes: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...


class StoredUsers(Protocol):
    """The users of the catalogue, for any thread."""

    def kafka_user(self, name: str, mechanism: str) -> StoredUser | None:
        """``None`` where there is none; raises an error of the catalogue."""


class Logins:
    """``users`` are those of the catalogue; ``None`` before a cluster, where nobody is stored. ``mechanisms`` are those
    of the settings, in their order.
    """

    def __init__(
        self,
        mechanisms: tuple[KafkaMechanism, ...],
        checks: CredentialChecks,
        users: StoredUsers | None,
    ) -> None:
        self.mechanisms = mechanisms
        self.checks = checks
        self._users = users
        self._threads = PasswordThreads()
        #: Of this process alone: names what is verified, and stands for the secret of decoys where none is stored.
        self._key = os.urandom(32)

    def close(self) -> None:
        """Verify nothing any more."""
        self._threads.close()

    async def password(self, user: str, password: bytes, peer: Peer) -> Accepted:
        """The client with this name and password; raises :exc:`AuthenticationFailed`."""
        _check_name(user)
        if self._users is not None:
            name = self._name(user.encode(), password)
            work = partial(self._is_stored, self._users, user, password)
            async with self.checks.turn(peer):
                is_good = await self._threads.run(host_of(peer.remote_address), name, work)
            if is_good:
                return Accepted(
                    role_of(user), credentials=ClientCredentials("basic", user.encode() + b":" + password)
                )
        if ":" in user:  # what is behind it would be of the password
            raise AuthenticationFailed("bad_password", _BAD)
        return await self._by_method("basic", user.encode() + b":" + password, peer)

    async def token(self, token: bytes, peer: Peer) -> Accepted:
        """The client with this token; raises :exc:`AuthenticationFailed`."""
        return await self._by_method("token", token, peer)

    async def credential(self, mechanism: str, user: str) -> ScramCredential:
        """What is stored of a user for a mechanism of SCRAM, a decoy where that is nothing.

        Raises :exc:`AuthenticationFailed`.
        """
        _check_name(user)
        users = self._users
        if users is None:
            return decoy_of(mechanism, user, self._key)
        stored = await asyncio.to_thread(self._stored, users, user, (mechanism,))
        return stored[0]

    async def _by_method(self, method: str, data: bytes, peer: Peer) -> Accepted:
        authenticator = self.checks.authenticator
        if authenticator.verifies(method):
            principal = await self.checks.check(method, data, peer)
            # The role of those who prove nothing is not for those who prove it wrongly.
            if principal is not authenticator.anonymous:
                return Accepted(principal, credentials=ClientCredentials(method, data))
        raise AuthenticationFailed("bad_password", _BAD)

    def _is_stored(self, users: StoredUsers, user: str, password: bytes) -> bool:
        """Compare a password with the user's credential of each mechanism: long work, for a thread."""
        verdicts = [stored.has_password(password) for stored in self._stored(users, user, _SCRAM)]
        return any(verdicts)  # after all of the work

    def _name(self, user: bytes, password: bytes) -> bytes:
        """A name of this check, which tells nothing of the password."""
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


def _credential(mechanism: str, row: StoredUser) -> ScramCredential:
    return ScramCredential(mechanism, row.iterations, row.salt, row.stored_key, row.server_key)


def _check_name(user: str) -> None:
    if not user.strip() or len(user) > LONGEST_ROLE:
        raise AuthenticationFailed("bad_password", _BAD)


def role_of(user: str) -> Principal:
    """The principal of a user that has proven its name; raises :exc:`AuthenticationFailed`."""
    try:
        return Principal(user)
    except ValueError as error:
        raise AuthenticationFailed("bad_role", f"the user is no role: {error}") from None
