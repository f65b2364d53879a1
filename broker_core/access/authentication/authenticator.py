"""The authenticator: from a method and its data to a principal, for all transports."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from broker_core.access.authentication.failures import (
    AuthenticationFailed,
    AuthenticationUnusable,
    InvalidRoles,
    unusable_reason,
)
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal, Verified
from broker_core.settings import AuthenticationSettings, BasicSettings, Method, TokenSettings

__all__ = ["AskPlugins", "Authenticator", "Grounds", "Verifier"]

#: Asks the plugins about a method that is none of the server's own: method, data, peer; ``None`` if all have passed.
AskPlugins: TypeAlias = Callable[[str, bytes, Peer], Awaitable[Principal | None]]
#: The name of the method of a client that names none.
_NO_METHOD: Final = "none"


class Verifier(Protocol):
    """The verification of one method's credentials."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that :meth:`reload` reads."""

    def verify(self, data: bytes, peer: Peer) -> Verified:
        """The principal, at once or awaited; raises :exc:`AuthenticationFailed`."""

    def evidence(self, data: bytes, peer: Peer) -> object:
        """The evidence of credentials that were verified just now, without a password."""

    def upholds(self, role: str, evidence: object) -> bool:
        """Whether the credentials would still be verified, with the same role."""

    def reload(self) -> None:
        """Read keys and files again; raises if the former ones stay."""

    def close(self) -> None:
        """Verify nothing any more."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """The grounds of a client's role: credentials of a ``method`` of the settings, or credentials that a plugin
    accepted, or none (``is_anonymous``).
    """

    role: str
    method: str | None = None
    evidence: object = field(default=None, repr=False)
    is_anonymous: bool = False


class Authenticator:
    """Authenticates clients by the settings, and by plugins (``ask_plugins``) for other methods.

    Nothing of a client's credentials is logged, or is a part of an error. It reads files when it is made: call it in a
    thread. Raises :exc:`AuthenticationUnusable` for keys and files that cannot be used.
    """

    def __init__(self, settings: AuthenticationSettings, ask_plugins: AskPlugins | None = None) -> None:
        self._ask_plugins = ask_plugins
        self._verifiers: dict[str, Verifier] = {}
        #: The number of changes that may have made good credentials bad: of a key, a file or a setting.
        self.generation = 0
        self.prepare(settings)()

    def prepare(self, settings: AuthenticationSettings) -> Callable[[], None]:
        """Read the files of new settings, in a thread; the returned function puts them in force.

        Checks under way go on with the former ones. Raises :exc:`AuthenticationUnusable`.
        """
        verifiers = _verifiers(settings)

        def put_in_force() -> None:
            self._settings = settings
            #: The principal of clients that use none of the methods; ``None``: they are refused.
            self.anonymous = Principal(settings.anonymous_role) if settings.anonymous_role else None
            self._proxy_roles = frozenset(settings.proxy_roles)
            self._verifiers = verifiers
            #: Whether clients are authenticated at all; if not, nobody has a role.
            self.enabled = settings.is_on or self._ask_plugins is not None
            self.generation += 1

        return put_in_force

    @property
    def methods(self) -> Collection[Method]:
        """The methods of the settings."""
        return self._settings.methods

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of keys and passwords, which :meth:`reload` reads."""
        return tuple(file for verifier in self._verifiers.values() for file in verifier.files)

    @property
    def takes_certificates(self) -> bool:
        """Whether the certificate of a client gives it a role."""
        return "tls" in self._verifiers

    def verifies(self, method: str) -> bool:
        """Whether credentials of a method are verified at all: by the settings, or perhaps by plugins."""
        return method in self._verifiers or self.asks_plugins

    @property
    def asks_plugins(self) -> bool:
        """Whether plugins are asked about methods that are none of the settings."""
        return self._ask_plugins is not None

    def authenticate(self, method: str | None, data: bytes, peer: Peer) -> Verified:
        """The principal of a client, at once or awaited; raises :exc:`AuthenticationFailed`.

        ``method`` is the name of the method, ``None`` if the client names none.
        """
        verifier = None if method is None else self._verifiers.get(method)
        if verifier is not None:
            return verifier.verify(data, peer)
        if self._ask_plugins is not None:
            return self._verified_by_plugins(self._ask_plugins, method, data, peer)
        return self._without_credentials(method)

    async def _verified_by_plugins(
        self, ask: AskPlugins, method: str | None, data: bytes, peer: Peer
    ) -> Principal:
        principal = await ask(method or _NO_METHOD, data, peer)
        if principal is not None:
            return _not_expired(principal)
        if method not in (None, "", _NO_METHOD):
            # A plugin may have passed because the credentials are wrong: such a client is not let in as anonymous.
            raise AuthenticationFailed("refused_by_plugins", "no plugin has accepted the credentials")
        return self._without_credentials(method)

    def _without_credentials(self, method: str | None) -> Principal:
        if self.anonymous is not None:
            return self.anonymous
        if method in (None, "", _NO_METHOD):
            raise AuthenticationFailed("no_credentials", "the client names no method")
        raise AuthenticationFailed("unknown_method", "the method is not one of authentication.methods")

    def identity(
        self,
        principal: Principal,
        *,
        original_principal: str | None,
        proxy_version: str | None = None,
    ) -> tuple[str, str | None]:
        """Role and original principal of a client; raises :exc:`InvalidRoles` if it may not name
        ``original_principal``.

        As at Pulsar's broker, a proxy role must name an original principal that is no proxy role; any other role must
        name none, not even itself. The credentials of the original principal are not looked at, as in Pulsar by
        default. An empty one counts as named, if no proxy names it: no rule of authorization allows it anything.
        docs/reference/pulsar-behaviour.md#authentication
        """
        role = principal.role
        if role in self._proxy_roles:
            if not original_principal or original_principal in self._proxy_roles:
                raise InvalidRoles("Invalid roles.", role)
        elif original_principal:
            raise InvalidRoles("Invalid roles.", role)
        elif proxy_version is not None:
            raise InvalidRoles("Must not set proxyVersion without connecting as a ProxyRole.", role)
        return role, original_principal

    def grounds(self, method: str | None, data: bytes, peer: Peer, principal: Principal) -> Grounds:
        """The grounds of a client that was authenticated as this principal just now."""
        if principal is self.anonymous:
            return Grounds(principal.role, is_anonymous=True)
        verifier = None if method is None else self._verifiers.get(method)
        if verifier is None:
            return Grounds(principal.role)
        return Grounds(principal.role, method, verifier.evidence(data, peer))

    def upholds(self, grounds: Grounds) -> bool:
        """Whether a client would still be let in on these grounds, with the same role. Plugins are not asked:
        credentials that they accepted are good until they end.
        """
        if grounds.is_anonymous:
            return self.anonymous is not None and self.anonymous.role == grounds.role
        if grounds.method is None:
            return self.asks_plugins
        verifier = self._verifiers.get(grounds.method)
        return verifier is not None and verifier.upholds(grounds.role, grounds.evidence)

    def look_again(self) -> None:
        """Note that something else has changed on which credentials depend; from any thread."""
        self.generation += 1

    def reload(self) -> None:
        """Read keys and files again: a broken one keeps its former state, and the others are read.

        Raises :exc:`AuthenticationUnusable`.
        """
        failures: list[str] = []
        for method, verifier in self._verifiers.items():
            try:
                verifier.reload()
            except (OSError, ValueError) as error:
                failures.append(str(_unusable(method, self._settings, error)))
        self.generation += 1
        if failures:
            raise AuthenticationUnusable("; ".join(failures))

    def close(self) -> None:
        """End the threads, when no client is served any more."""
        for verifier in self._verifiers.values():
            verifier.close()


def _not_expired(principal: Principal) -> Principal:
    if principal.expires_at is not None and principal.expires_at <= time.time():
        raise AuthenticationFailed("expired", f"they ended {time.time() - principal.expires_at:.0f} s ago")
    return principal


def _verifiers(settings: AuthenticationSettings) -> dict[str, Verifier]:
    verifiers: dict[str, Verifier] = {}
    for method in settings.methods:
        try:
            verifiers[method] = _verifier(method, settings)
        except (OSError, ValueError) as error:
            raise _unusable(method, settings, error) from error
    return verifiers


def _verifier(method: Method, settings: AuthenticationSettings) -> Verifier:
    # Imported here, since servers without authentication have no use for the libraries.
    if method == "token":
        from broker_core.access.authentication.tokens.token_verifier import TokenVerifier

        return TokenVerifier(settings.token or TokenSettings())
    if method == "basic":
        from broker_core.access.authentication.basic.basic_verifier import BasicVerifier

        return BasicVerifier(settings.basic or BasicSettings())
    from broker_core.access.authentication.tls import TlsVerifier

    return TlsVerifier()


def _unusable(
    method: str, settings: AuthenticationSettings, error: OSError | ValueError
) -> AuthenticationUnusable:
    setting = "basic.file"
    if method == "token":
        setting = (
            "token.jwks" if settings.token is not None and settings.token.jwks is not None else "token.key"
        )
    return AuthenticationUnusable(f"authentication.{setting}: {unusable_reason(error)}")
