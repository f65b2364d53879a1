"""Principals and credentials for the brokers: the gateway's or its client's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from broker_core.access import Asker, ClientCredentials, Sessions
from broker_core.client import Credentials, CredentialsFailed, OriginalPrincipal
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar.renewed_token import CommandToken, OwnToken, SourceToken
from broker_core.upstream.pulsar.token_command import run_token_command
from broker_core.upstream.pulsar.token_expiry import expiry_of

__all__ = ["Identities", "Identity", "Principal", "own_token"]

#: Role and original principal of a client; ``None`` for this server itself.
Principal: TypeAlias = tuple[str | None, str | None] | None

_COMMAND: Final = 10.0  # seconds that the token command has
_FRESH: Final = 45.0  # seconds in which a client may send new credentials; brokers look again after 60
_LOOK: Final = 0.5  # seconds between two looks for them
_METHODS: Final = ("token", "basic")  # methods whose data can be passed on


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of one principal in CONNECT. ``after_refusal`` looks for another own token than the refused one."""

    credentials: Credentials
    original: OriginalPrincipal | None = None
    after_refusal: Callable[[bytes], Awaitable[bool]] | None = field(default=None, repr=False)


class Identities:
    """The identity of each client, by the settings. ``identifies`` says whether clients have roles at all.

    Nothing of a client is kept here: its credentials stay in ``sessions``, as long as it is connected.
    """

    def __init__(
        self, upstream: UpstreamSettings, sessions: Sessions | None, *, identifies: bool, own: OwnToken | None
    ) -> None:
        self._sessions = sessions
        self._own = own
        #: Whether the brokers get the client's credentials instead of the gateway's.
        self.by_client: Final = upstream.forward == "client"
        #: Whether the brokers get the client's credentials beside the gateway's.
        self.sends_originals: Final = upstream.original_auth_data
        #: Whether the brokers' answers depend on the client.
        self.forwards: Final = self.by_client or (identifies and upstream.has_own_credentials)
        self._credentials = Credentials()
        if own is not None:
            self._credentials = Credentials("token", own.current)
        elif upstream.has_own_credentials:
            self._credentials = Credentials("tls")

    async def stop(self) -> None:
        """End running work for the gateway's own token."""
        if self._own is not None:
            await self._own.stop()

    def principal_of(self, asker: Asker) -> Principal:
        """The principal for which brokers are asked. Raises :exc:`CredentialsFailed` if no connected client of it has
        anything to pass on; a lookup for several clients may outlive the one that began it.
        """
        if not self.forwards or (asker.role is None and not self.by_client):
            return None
        principal = asker.role, asker.original_principal
        if self.is_gone(principal):
            raise CredentialsFailed("there are no credentials of this client to ask the brokers with")
        return principal

    def identity_of(self, principal: Principal) -> Identity:
        """The identity to connect with now. Raises :exc:`CredentialsFailed`."""
        if principal is None:
            return self.of_gateway()
        role, original = principal
        if self.by_client:
            return self._of_client(principal)
        name = original or role
        assert name is not None
        credentials = None
        if self.sends_originals:
            # Of a certificate there is nothing to send on; brokers that verify original credentials refuse it.
            credentials = self._forwarded(principal, of_original=original is not None)
        return self.of_gateway(OriginalPrincipal(name, credentials))

    def of_gateway(self, original: OriginalPrincipal | None = None) -> Identity:
        """The gateway itself, or the gateway that asks for ``original``."""
        return Identity(self._credentials, original, None if self._own is None else self._own.after_refusal)

    def is_gone(self, principal: Principal) -> bool:
        """Whether no client is left with whose credentials the principal's connections were made."""
        if principal is None or not self._uses_sessions(principal):
            return False
        return self._sessions is None or not self._sessions.has_any(*principal)

    def has_expired(self, principal: Principal) -> bool:
        """Whether the latest credentials of the principal have expired."""
        if not self._uses_sessions(principal):
            return False
        latest = self._any_of(principal)
        return latest is not None and _has_expired(latest.data)

    def _uses_sessions(self, principal: Principal) -> bool:
        return principal is not None and (self.by_client or self.sends_originals)

    def _any_of(self, principal: Principal) -> ClientCredentials | None:
        return None if principal is None or self._sessions is None else self._sessions.any_of(*principal)

    def _of_client(self, principal: tuple[str | None, str | None]) -> Identity:
        credentials = self._forwarded(principal, of_original=False)
        if credentials is None:
            raise CredentialsFailed("credentials of this client's method cannot be passed on to the brokers")
        if principal[1] is None:
            return Identity(credentials)
        return Identity(
            credentials, OriginalPrincipal(principal[1], self._forwarded(principal, of_original=True))
        )

    def _forwarded(
        self, principal: tuple[str | None, str | None], *, of_original: bool
    ) -> Credentials | None:
        """The credentials of a live client, to send on; ``None`` if its method has none."""
        sent = self._any_of(principal)
        if sent is None:
            raise CredentialsFailed("the client is gone, and its credentials with it")
        method = sent.original_method if of_original else sent.method
        if method not in _METHODS:
            return None
        return Credentials(method, partial(self._latest, principal, method, of_original=of_original))

    async def _latest(
        self, principal: tuple[str | None, str | None], method: str, *, of_original: bool
    ) -> bytes:
        """The latest credentials of any connection of the principal. If they have expired, wait for new ones: this
        server asks the client for them at about the same time.
        """
        loop = asyncio.get_running_loop()
        by = loop.time() + _FRESH
        while True:
            sent = self._any_of(principal)
            if sent is None:
                raise CredentialsFailed("the client is gone, and its credentials with it")
            given, data = sent.method, sent.data
            if of_original:
                given, data = sent.original_method or "", (sent.original_data or "").encode()
            if given != method:
                raise CredentialsFailed("the client has credentials of another method now")
            if not _has_expired(data):
                return data
            if loop.time() >= by:
                raise CredentialsFailed("the credentials of the client have expired")
            await asyncio.sleep(_LOOK)


def _has_expired(data: bytes) -> bool:
    expires = expiry_of(data)
    return expires is not None and expires <= time.time()


def own_token(upstream: UpstreamSettings, table: str = "upstream") -> OwnToken | None:
    """The source of the gateway's own token, by the settings of a table; ``None`` if it has none."""
    if upstream.token_command:
        words = upstream.token_command
        return CommandToken(partial(run_token_command, words, timeout=_COMMAND), f"{table}.token_command")
    if upstream.token is not None:
        return SourceToken(upstream.token.read_secret, f"{table}.token")
    return None
