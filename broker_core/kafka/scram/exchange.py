"""The server's side of SCRAM: two messages of a client, and the server's answer to each (RFC 5802)."""

from __future__ import annotations

import hmac

from broker_core.kafka.scram.credentials import HASHES, ScramCredential, digest_of
from broker_core.kafka.scram.messages import (
    ClientFinal,
    ClientFirst,
    ScramError,
    ServerFirst,
    new_nonce,
    to_base64,
)

__all__ = ["ScramExchange"]


class ScramExchange:
    """One authentication, begun with the first message of a client and the credential of the user that it names.

    If that user does not exist, the credential is a decoy (:func:`~.credentials.decoy_of`).
    """

    __slots__ = ("_client", "_credential", "_first", "_nonce")

    def __init__(self, client: ClientFirst, credential: ScramCredential, *, nonce: str | None = None) -> None:
        """``nonce`` is the server's part, random if none is given."""
        self._client = client
        self._credential = credential
        self._nonce = client.nonce + (nonce or new_nonce())
        self._first = str(ServerFirst(self._nonce, credential.salt, credential.iterations))

    def first(self) -> bytes:
        """``server-first-message``."""
        return self._first.encode()

    def final(self, message: bytes) -> bytes:
        """``server-final-message`` to a client that has proven to know the password; else :exc:`ScramError`."""
        client, credential = ClientFinal.parse(message), self._credential
        if client.binding != self._client.gs2.encode():
            raise ScramError("the channel binding is another one than at the beginning")
        if not hmac.compare_digest(client.nonce, self._nonce):
            raise ScramError("the nonce is another one than at the beginning")
        signed = f"{self._client.bare},{self._first},{client.before}".encode()
        algorithm = HASHES[credential.mechanism]
        signature = hmac.digest(credential.stored_key, signed, algorithm)
        if len(client.proof) != len(signature):
            raise ScramError("the proof has another length than the hash")
        client_key = bytes(proven ^ own for proven, own in zip(client.proof, signature, strict=True))
        if not hmac.compare_digest(digest_of(credential.mechanism, client_key), credential.stored_key):
            raise ScramError("the proof is wrong")
        return b"v=" + to_base64(hmac.digest(credential.server_key, signed, algorithm)).encode()
