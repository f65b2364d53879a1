"""The mechanisms of SASL by which clients prove their identity, each an exchange of tokens, and their needs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from broker_core.access import AuthenticationFailed
from broker_core.errors import BrokerCoreError
from broker_core.kafka.scram import ClientFirst, ScramError, ScramExchange
from broker_core.service import Admitted, LoginAttempt, Logins, OtherName, role_of
from broker_core.settings import KafkaMechanism

__all__ = ["Accepted", "Exchange", "MechanismUnusable", "SaslRefused", "check_mechanisms", "exchange_of"]

#: Kafka's texts for refused clients.
_BAD: Final = "Authentication failed: Invalid username or password"
_OTHER_AUTHZID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_OTHER_THAN_TOKEN: Final = (
    "Authentication failed: Client requested an authorization id that is different from the token's principal "
    "name"
)
#: The text for any refused token (RFC 7628); the client answers, and is refused then.
_INVALID: Final = '{"status":"invalid_token"}'
_MESSAGE: Final = re.compile(
    rb"n,(?:a=(?P<authzid>(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01"
    rb"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER: Final = re.compile(rb"auth=bearer +(?P<token>[-_.~+/=a-z0-9]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The client is let in; ``token`` is the server's last one."""

    admitted: Admitted
    token: bytes = field(default=b"", repr=False)


class SaslRefused(Exception):
    """The client has not proven its identity. ``text`` is Kafka's for the client, ``None``: the common one.

    ``failure`` says more to the log alone; ``None`` if it was counted already.
    """

    def __init__(self, failure: AuthenticationFailed | None, text: str | None = None) -> None:
        super().__init__(text or str(failure))
        self.failure = failure
        self.text = text


#: One authentication: from a token of the client to the server's next token, or the end. Raises :exc:`SaslRefused`,
#: :exc:`InvalidRoles` and :exc:`~broker_core.service.OtherPrincipal`.
Exchange: TypeAlias = Callable[[bytes], Awaitable[bytes | Accepted]]


def exchange_of(mechanism: str, logins: Logins, attempt: LoginAttempt) -> Exchange:
    """A new authentication by a mechanism of the settings."""
    if mechanism == "PLAIN":
        return partial(_plain, logins, attempt)
    if mechanism == "OAUTHBEARER":
        return _oauthbearer(logins, attempt)
    return _scram(mechanism, logins, attempt)


# ---- PLAIN (RFC 4616): one token with a name and a password


async def _plain(logins: Logins, attempt: LoginAttempt, token: bytes) -> Accepted:
    attempt.name, user, password = _parts_of_plain(token)
    try:
        return Accepted(await logins.password(attempt, user, password))
    except OtherName:
        raise SaslRefused(None, _OTHER_AUTHZID) from None
    except AuthenticationFailed:
        raise SaslRefused(None, _BAD) from None


def _parts_of_plain(token: bytes) -> tuple[str, str, bytes]:
    # A fourth part is refused: HMAC pads a key with zeros, so a password has none.
    parts = token.split(b"\x00", 3)
    if len(parts) != 3:
        text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
        raise SaslRefused(AuthenticationFailed("no_credentials", "it is no token of PLAIN"), text)
    authzid, user, password = parts
    if not user or not password:
        missing = "password" if user else "username"
        text = f"Authentication failed: {missing} not specified"
        raise SaslRefused(AuthenticationFailed("no_credentials", f"there is no {missing}"), text)
    try:
        return authzid.decode(), user.decode(), password
    except UnicodeDecodeError:
        raise SaslRefused(AuthenticationFailed("bad_password", "the user is not UTF-8"), _BAD) from None


# ---- OAUTHBEARER (RFC 7628): one token with a JSON Web Token, which the method ``token`` verifies


def _oauthbearer(logins: Logins, attempt: LoginAttempt) -> Exchange:
    is_refused = False

    async def step(token: bytes) -> bytes | Accepted:
        nonlocal is_refused
        if is_refused:
            raise SaslRefused(None, _INVALID)
        attempt.name, bearer = _parts_of_oauthbearer(token)
        try:
            return Accepted(await logins.token(attempt, bearer))
        except OtherName:
            raise SaslRefused(None, _OTHER_THAN_TOKEN) from None
        except AuthenticationFailed:
            is_refused = True
            return _INVALID.encode()

    return step


def _parts_of_oauthbearer(token: bytes) -> tuple[str, bytes]:
    found = _MESSAGE.fullmatch(token)
    bearers = [_BEARER.fullmatch(pair) for pair in found["pairs"].split(b"\x01")] if found else []
    given = [bearer["token"] for bearer in bearers if bearer is not None]
    if found is None or len(given) != 1:
        raise SaslRefused(AuthenticationFailed("no_credentials", "it is no token of OAUTHBEARER"))
    authzid = (found["authzid"] or b"").decode().replace("=2C", ",").replace("=3D", "=")
    return authzid, given[0]


# ---- SCRAM-SHA-256 and SCRAM-SHA-512 by the credentials of the catalogue's users: two tokens of the client


def _scram(mechanism: str, logins: Logins, attempt: LoginAttempt) -> Exchange:
    """A user that does not exist is refused at its second token, as a wrong password is."""
    user, exchange = "", None

    async def begin(first: ClientFirst) -> bytes:
        nonlocal user, exchange
        credential = await logins.credential(attempt, mechanism, first.name)
        if first.authzid and first.authzid != first.name:
            raise SaslRefused(OtherName(), _OTHER_AUTHZID)
        user, exchange = first.name, ScramExchange(first, credential)
        return exchange.first()

    async def step(token: bytes) -> bytes | Accepted:
        try:
            if exchange is None:
                return await begin(ClientFirst.parse(token))
            last, principal = exchange.final(token), role_of(user)
        except ScramError as error:
            raise SaslRefused(AuthenticationFailed("bad_password", str(error))) from None
        except AuthenticationFailed as error:
            raise SaslRefused(error) from None
        return Accepted(await logins.admission.later(attempt, lambda: principal), last)

    return step


# ---- the needs of mechanisms


class MechanismUnusable(BrokerCoreError):
    """Nobody could ever be authenticated by a mechanism of ``[kafka.sasl]``; the message names the setting."""


def check_mechanisms(
    mechanisms: Iterable[KafkaMechanism], verifies: Callable[[str], bool], *, has_users: bool
) -> None:
    """Raise :exc:`MechanismUnusable` for a mechanism whose credentials nothing verifies.

    ``verifies`` says whether a method of ``[authentication]`` is verified; ``has_users``: there is an embedded
    catalogue, with the users of SCRAM.
    """
    for mechanism in mechanisms:
        missing: str | None = None
        if mechanism == "OAUTHBEARER" and not verifies("token"):
            missing = "it needs 'token' in authentication.methods"
        elif mechanism == "PLAIN" and not has_users and not verifies("basic"):
            missing = "before a Pulsar cluster it needs 'basic' in authentication.methods"
        elif mechanism.startswith("SCRAM") and not has_users:
            missing = "its users are in the embedded catalogue, and before a Pulsar cluster there is none"
        if missing is not None:
            raise MechanismUnusable(f"kafka.sasl.mechanisms: {mechanism!r} cannot be used: {missing}")
