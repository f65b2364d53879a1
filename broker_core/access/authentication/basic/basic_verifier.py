"""The method ``basic``: a user name with a password of an htpasswd file. The user name is the role."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from broker_core.access.asker import host_of, network_of
from broker_core.access.authentication.basic.htpasswd_file import matches, read_htpasswd
from broker_core.access.authentication.failures import AuthenticationFailed, bad_password
from broker_core.access.authentication.password_threads import PasswordThreads
from broker_core.access.peer import Peer
from broker_core.access.principal import LONGEST_ROLE, Principal, Verified
from broker_core.memory import BoundedCache
from broker_core.settings import BasicSettings

__all__ = ["BasicVerifier"]

#: Bytes of good verdicts, and of bad ones: some 8,000 each. Bad ones never drive out good ones.
_KEPT: Final = 4 * 1024**2


class _Verdicts:
    """The users of one version of the file, and the verdicts on the passwords that were tried.

    The key of the hash is of this object alone, and of this process: a kept verdict reveals nothing of a password.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self._hashes = tuple(users.values())
        self._key = os.urandom(32)
        self._kept: dict[bool, BoundedCache[bytes, bool]] = {
            verdict: BoundedCache(_KEPT) for verdict in (True, False)
        }

    def hash_of(self, user: str) -> str | None:
        """The hash of a user's password, ``None`` if there is no such user."""
        return self._users.get(user)

    def digest(self, user: str, password: bytes) -> bytes:
        """The keyed hash of user and password."""
        name = user.encode(errors="surrogatepass")
        return hashlib.blake2b(
            b"%d:%b%b" % (len(name), name, password), key=self._key, digest_size=32
        ).digest()

    def kept(self, digest: bytes) -> bool | None:
        """The known verdict, ``None`` if there is none."""
        return next((verdict for verdict, kept in self._kept.items() if kept.get(digest)), None)

    def decide(self, user: str, password: bytes) -> bool:
        """Verify a password: long work, for a thread. An unknown user takes as long as one of the file."""
        hashed = self._users.get(user)
        if hashed is None:
            # Always the same hash for a name, as if it were a user of the file.
            place = int.from_bytes(self.digest(user, b"")) % len(self._hashes)
            matches(self._hashes[place], password)
            return False
        return matches(hashed, password)

    def keep(self, digest: bytes, *, verdict: bool) -> None:
        """Keep a verdict."""
        self._kept[verdict].put(digest, True, len(digest))


class BasicVerifier:
    """Verifies passwords. Raises :exc:`OSError` or :exc:`ValueError` for a file that cannot be used."""

    def __init__(self, settings: BasicSettings) -> None:
        if settings.file is None:
            raise ValueError("it is not set")
        self._file = settings.file
        self._verdicts = _Verdicts(read_htpasswd(settings.file))
        self._threads = PasswordThreads[bool]()

    @property
    def files(self) -> tuple[Path, ...]:
        """The htpasswd file."""
        return (self._file,)

    def verify(self, data: bytes, peer: Peer) -> Verified:
        """The principal of a user, awaited if no verdict is kept; raises :exc:`AuthenticationFailed`."""
        user, password = _parts(data)
        kept = self._verdicts.kept(self._verdicts.digest(user, password))
        return self._decide(user, password, peer) if kept is None else _principal(user, kept)

    async def _decide(self, user: str, password: bytes, peer: Peer) -> Principal:
        while True:
            verdicts = self._verdicts
            digest = verdicts.digest(user, password)
            verdict = verdicts.kept(digest)
            if verdict is None:
                work = partial(verdicts.decide, user, password)
                verdict = await self._threads.run(network_of(host_of(peer.remote_address)), digest, work)
                verdicts.keep(digest, verdict=verdict)
            if verdicts is self._verdicts:  # else the file has changed meanwhile
                return _principal(user, verdict)

    def evidence(self, data: bytes, peer: Peer) -> str | None:  # noqa: ARG002 - a password says it all
        """The hash of the password in the file; ``None`` if the file has changed since the verdict."""
        user, password = _parts(data)
        verdicts = self._verdicts
        return verdicts.hash_of(user) if verdicts.kept(verdicts.digest(user, password)) else None

    def upholds(self, role: str, evidence: object) -> bool:
        """Whether the user has the same hash."""
        return evidence is not None and self._verdicts.hash_of(role) == evidence

    def reload(self) -> None:
        """Read the file again, and forget all verdicts; raises if it cannot be used, and the former one stays."""
        self._verdicts = _Verdicts(read_htpasswd(self._file))

    def close(self) -> None:
        """Verify nothing any more."""
        self._threads.close()


def _parts(data: bytes) -> tuple[str, bytes]:
    user, colon, password = data.partition(b":")
    if not data:
        raise AuthenticationFailed("no_credentials", "the client sends no user and password")
    if not colon:
        raise AuthenticationFailed("bad_password", "the data is not USER:PASSWORD")
    try:
        name = user.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("bad_password", "the user is not UTF-8") from None
    if len(name) > LONGEST_ROLE:
        raise AuthenticationFailed("bad_password", "the user is longer than a role may be")
    return name, password


def _principal(user: str, verdict: bool) -> Principal:
    if not verdict:
        raise bad_password()
    return Principal(user)
