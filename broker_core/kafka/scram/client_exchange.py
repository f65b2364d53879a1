"""The client's side of SCRAM, which also checks that the server knows the credential (RFC 5802)."""

from __future__ import annotations

import hmac
from typing import Final

from broker_core.counted import counted
from broker_core.kafka.scram.credentials import (
    HASHES,
    client_key_of,
    digest_of,
    salted_password,
    server_key_of,
)
from broker_core.kafka.scram.messages import (
    ScramError,
    ServerFirst,
    from_base64,
    new_nonce,
    saslname,
    to_base64,
)

__all__ = ["ScramClientExchange"]

#: Fewer rounds are too weak (RFC 7677), and more would keep a client busy for seconds.
_LEAST: Final = 4096
_MOST: Final = 1_000_000
_GS2: Final = "n,,"


class ScramClientExchange:
    """One authentication: :meth:`first`, then :meth:`final`, then :meth:`finish`. ``mechanism`` is Kafka's name."""

    __slots__ = ("_bare", "_mechanism", "_nonce", "_password", "_signature")

    def __init__(self, mechanism: str, user: str, password: str, *, nonce: str | None = None) -> None:
        """``nonce`` is the client's part, random if none is given. :exc:`ValueError` for another mechanism."""
        if mechanism not in HASHES:
            raise ValueError(f"{mechanism!r} is no mechanism of SCRAM")
        self._mechanism = mechanism
        self._password = password.encode()
        self._nonce = nonce or new_nonce()
        self._bare = f"n={saslname(user)},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """``client-first-message``."""
        return f"{_GS2}{self._bare}".encode()

    def final(self, message: bytes) -> bytes:
        """``client-final-message``; it takes milliseconds of CPU time. Raises :exc:`~.messages.ScramError`."""
        server = ServerFirst.parse(message)
        if not server.nonce.startswith(self._nonce) or server.nonce == self._nonce:
            raise ScramError("the server's nonce is not the client's with more behind it")
        if not _LEAST <= server.iterations <= _MOST:
            raise ScramError(
                f"the server wants {counted(server.iterations, 'round')}: from {_LEAST} to {_MOST} are possible"
            )
        mechanism, algorithm = self._mechanism, HASHES[self._mechanism]
        salted = salted_password(mechanism, self._password, server.salt, server.iterations)
        before = f"c={to_base64(_GS2.encode())},r={server.nonce}"
        signed = f"{self._bare},".encode() + message + f",{before}".encode()
        client_key = client_key_of(mechanism, salted)
        signature = hmac.digest(digest_of(mechanism, client_key), signed, algorithm)
        proof = bytes(key ^ own for key, own in zip(client_key, signature, strict=True))
        self._signature = hmac.digest(server_key_of(mechanism, salted), signed, algorithm)
        return f"{before},p={to_base64(proof)}".encode()

    def finish(self, message: bytes) -> None:
        """Check the server's last message. Raises :exc:`~.messages.ScramError` unless it knows the credential too."""
        value = message.split(b",", 1)[0]
        if value.startswith(b"e="):
            raise ScramError("the server refuses the credentials")
        if not value.startswith(b"v=") or not self._signature:
            raise ScramError("it is no final message of a server of SCRAM")
        try:
            signature = from_base64(value[2:].decode("ascii"))
        except UnicodeDecodeError:
            raise ScramError("the signature is not base64") from None
        if not hmac.compare_digest(signature, self._signature):
            raise ScramError("the server does not know the credential of this user")
