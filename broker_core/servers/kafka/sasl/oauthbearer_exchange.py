"""SASL OAUTHBEARER (RFC 7628): one token with a JSON Web Token, which the method ``token`` verifies."""

from __future__ import annotations

import re
from typing import Final

from broker_core.access import AuthenticationFailed
from broker_core.servers.kafka.sasl.exchange import Accepted, SaslRefused
from broker_core.service import LoginAttempt, Logins, OtherName

__all__ = ["OauthbearerExchange"]

_MESSAGE: Final = re.compile(
    rb"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    rb"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER: Final = re.compile(rb"auth=bearer +(?P<token>[-_.~+/=a-z0-9]+)", re.IGNORECASE)
#: The text for any refused token (RFC 7628); the client answers, and is refused then.
_INVALID: Final = '{"status":"invalid_token"}'

_OTHER_AUTHZID: Final = (
    "Authentication failed: Client requested an authorization id that is different from the token's principal "
    "name"
)


class OauthbearerExchange:
    """One authentication."""

    def __init__(self, logins: Logins, attempt: LoginAttempt) -> None:
        self._logins = logins
        self._attempt = attempt
        self._is_refused = False

    async def step(self, token: bytes) -> bytes | Accepted:
        """The end, or why the token is refused; raises :exc:`SaslRefused`."""
        if self._is_refused:
            raise SaslRefused(None, _INVALID)
        self._attempt.name, bearer = _parts(token)
        try:
            return Accepted(await self._logins.token(self._attempt, bearer))
        except OtherName:
            raise SaslRefused(None, _OTHER_AUTHZID) from None
        except AuthenticationFailed:
            self._is_refused = True
            return _INVALID.encode()


def _parts(token: bytes) -> tuple[str, bytes]:
    found = _MESSAGE.fullmatch(token)
    bearers = [_BEARER.fullmatch(pair) for pair in found["pairs"].split(b"\x01")] if found else []
    given = [bearer["token"] for bearer in bearers if bearer is not None]
    if found is None or len(given) != 1:
        raise SaslRefused(AuthenticationFailed("no_credentials", "it is no token of OAUTHBEARER"))
    authzid = (found["authzid"] or b"").decode().replace("=2C", ",").replace("=3D", "=")
    return authzid, given[0]
