"""The method ``basic``: a user name with a password of an htpasswd file. The user name is the role."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from broker_core.access.authentication.basic.htpasswd_file import read_htpasswd
from broker_core.access.authentication.basic.verdicts import Verdicts
from broker_core.access.authentication.failures import AuthenticationFailed, bad_password
from broker_core.access.authentication.password_threads import PasswordThreads
from broker_core.access.peer import Peer
from broker_core.access.principal import LONGEST_ROLE, Principal
from broker_core.access.remote_address import host_of, network_of
from broker_core.settings import BasicSettings

__all__ = ["BasicVerifier"]


class BasicVerifier:
    """Verifies passwords. Raises :exc:`OSError` or :exc:`ValueError` for a file that cannot be used."""

    def __init__(self, settings: BasicSettings) -> None:
        if settings.file is None:
            raise ValueError("it is not set")
        self._file = settings.file
        self._verdicts = Verdicts(read_htpasswd(settings.file))
        self._threads = PasswordThreads[bool]()

    @property
    def files(self) -> tuple[Path, ...]:
        """The htpasswd file."""
        return (self._file,)

    def verify_now(self, data: bytes, peer: Peer) -> Principal | None:  # noqa: ARG002 - a password says it all
        """The principal by a kept verdict, ``None`` if there is none; raises :exc:`AuthenticationFailed`."""
        user, password = _parts(data)
        return _principal(user, self._verdicts.kept(self._verdicts.digest(user, password)))

    async def verify(self, data: bytes, peer: Peer) -> Principal:
        """The principal of a user; raises :exc:`AuthenticationFailed`."""
        user, password = _parts(data)
        while True:
            verdicts = self._verdicts
            digest = verdicts.digest(user, password)
            verdict = verdicts.kept(digest)
            if verdict is None:
                work = partial(verdicts.decide, user, password)
                verdict = await self._threads.run(network_of(host_of(peer.remote_address)), digest, work)
                verdicts.keep(digest, verdict=verdict)
            if verdicts is self._verdicts:  # else the file has changed meanwhile
                principal = _principal(user, verdict)
                assert principal is not None
                return principal

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
        self._verdicts = Verdicts(read_htpasswd(self._file))

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


def _principal(user: str, verdict: bool | None) -> Principal | None:
    if verdict is False:
        raise bad_password()
    return Principal(user) if verdict else None
