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
    parts = token.split(b"\x00", 2)
    # HMAC reads a key as if zeros were behind it: a password has none.
    if len(parts) != 3 or not parts[1] or not parts[2] or b"\x00" in parts[2]:
        raise SaslRefused(AuthenticationFailed("no_credentials", "it is no token of PLAIN"))
    try:
        return parts[0].decode(), parts[1].decode(), parts[2]
    except UnicodeDecodeError:
        raise SaslRefused(AuthenticationFailed("bad_password", "the user is not UTF-8")) from None
