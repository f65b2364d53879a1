"""Whom a Kafka cluster is asked for, by credentials of a client."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from broker_core.access.sessions import ClientCredentials
from broker_core.client.kafka import OAuthBearer, Plain, Sasl

__all__ = ["ClientIdentity", "identity_of"]


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


def _given(secret: str) -> Callable[[], str]:
    return lambda: secret
