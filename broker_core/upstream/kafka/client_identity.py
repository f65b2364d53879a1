"""Identities of clients at a Kafka cluster, and their principals, by the credentials of a client."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from broker_core.access import AuthenticationFailed, ClientCredentials, Principal
from broker_core.client.kafka import OAuthBearer, Plain, Sasl
from broker_core.upstream.token_claims import claims_of

__all__ = ["ClientIdentity", "identity_of", "principal_of"]


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The credentials of a client, to authenticate with at the nodes; clients of one ``key`` share connections."""

    key: str
    sasl: Sasl = field(repr=False)


def identity_of(credentials: ClientCredentials) -> ClientIdentity:
    """The identity of a client with a password (``basic``) or a token, at the nodes."""
    data = credentials.data
    key = hashlib.sha256(credentials.method.encode() + b"\0" + data).hexdigest()
    if credentials.method == "token":
        return ClientIdentity(key, OAuthBearer(_given(data.decode("ascii", "replace"))))
    user, _, password = data.partition(b":")
    return ClientIdentity(key, Plain(user.decode(), _given(password.decode())))


def principal_of(credentials: ClientCredentials) -> Principal:
    """The principal of credentials that the cluster has verified: the user of a password, or the subject of a token,
    as Kafka takes it by default. Raises :exc:`~broker_core.access.authentication.AuthenticationFailed`.
    """
    expires: float | None = None
    try:
        if credentials.method == "token":
            role, expires = _claims(credentials.data)
        else:
            role = credentials.data.partition(b":")[0].decode()
        return Principal(role, expires)
    except (TypeError, ValueError) as error:
        raise AuthenticationFailed("bad_role", str(error)) from None


def _claims(token: bytes) -> tuple[str, float | None]:
    """The subject and the end of a token, neither of which is verified here."""
    try:
        claims = claims_of(token)
    except ValueError as unread:
        raise AuthenticationFailed("bad_token", str(unread)) from None
    if "sub" not in claims:
        raise AuthenticationFailed("no_subject", "it has no claim sub")
    return claims["sub"], claims.get("exp")


def _given(secret: str) -> Callable[[], str]:
    return lambda: secret
