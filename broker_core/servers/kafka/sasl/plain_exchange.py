"""SASL PLAIN (RFC 4616): one token with a name and a password."""

from __future__ import annotations

from typing import Final

from broker_core.access.authentication import AuthenticationFailed
from broker_core.access.peer import Peer
from broker_core.servers.kafka.sasl.exchange import Accepted, SaslRefused
from broker_core.servers.kafka.sasl.logins import Logins

__all__ = ["OTHER_AUTHZID", "PlainExchange"]

#: Kafka's texts.
_BAD: Final = "Authentication failed: Invalid username or password"
OTHER_AUTHZID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class PlainExchange:
    """One authentication."""

    def __init__(self, logins: Logins, peer: Peer) -> None:
        self._logins = logins
        self._peer = peer

    async def step(self, token: bytes) -> Accepted:
        """The end; raises :exc:`SaslRefused`."""
        authzid, user, password = _parts(token)
        try:
            accepted = await self._logins.password(user, password, self._peer)
        except AuthenticationFailed as error:
            raise SaslRefused(error, _BAD) from None
        if authzid and authzid != user:
            raise SaslRefused(AuthenticationFailed("bad_role", "another authorization id"), OTHER_AUTHZID)
        return accepted


def _parts(token: bytes) -> tuple[str, str, bytes]:
    # A fourth part is refused: HMAC reads a key as if zeros were behind it, so a password has none.
    parts = token.split(b"\x00", 3)
    if len(parts) != 3:
        told = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
        raise SaslRefused(AuthenticationFailed("no_credentials", "it is no token of PLAIN"), told)
    authzid, user, password = parts
    if not user or not password:
        missing = "password" if user else "username"
        told = f"Authentication failed: {missing} not specified"
        raise SaslRefused(AuthenticationFailed("no_credentials", f"there is no {missing}"), told)
    try:
        return authzid.decode(), user.decode(), password
    except UnicodeDecodeError:
        raise SaslRefused(AuthenticationFailed("bad_password", "the user is not UTF-8"), _BAD) from None
