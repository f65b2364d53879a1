"""SASL PLAIN (RFC 4616): one token with a name and a password."""

from __future__ import annotations

from typing import Final

from broker_core.access import AuthenticationFailed
from broker_core.servers.kafka.sasl.exchange import Accepted, SaslRefused
from broker_core.service import LoginAttempt, Logins, OtherName

__all__ = ["OTHER_AUTHZID", "PlainExchange"]

#: Kafka's texts.
_BAD: Final = "Authentication failed: Invalid username or password"
OTHER_AUTHZID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class PlainExchange:
    """One authentication."""

    def __init__(self, logins: Logins, attempt: LoginAttempt) -> None:
        self._logins = logins
        self._attempt = attempt

    async def step(self, token: bytes) -> Accepted:
        """The end; raises :exc:`SaslRefused`."""
        self._attempt.name, user, password = _parts(token)
        try:
            return Accepted(await self._logins.password(self._attempt, user, password))
        except OtherName:
            raise SaslRefused(None, OTHER_AUTHZID) from None
        except AuthenticationFailed:
            raise SaslRefused(None, _BAD) from None


def _parts(token: bytes) -> tuple[str, str, bytes]:
    # A fourth part is refused: HMAC pads a key with zeros, so a password has none.
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
