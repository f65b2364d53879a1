"""Stored credentials of SCRAM: made from a password, compared with one, and decoys for users that do not exist.

No password can be read from a credential (RFC 5802), but its holder can pose as the server.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

__all__ = [
    "DECOY_USER",
    "HASHES",
    "ITERATIONS",
    "SALT_BYTES",
    "ScramCredential",
    "client_key_of",
    "decoy_of",
    "derive_credential",
    "digest_of",
    "salted_password",
    "server_key_of",
]

#: The hash of each mechanism, by Kafka's name of the mechanism.
HASHES: Final[Mapping[str, str]] = MappingProxyType({"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"})
#: Rounds of PBKDF2 of all credentials that are made here. Kafka's clients accept 4,096 to 16,384. All users have the
#: same number, since a decoy has it too.
ITERATIONS: Final = 8192
SALT_BYTES: Final = 24
#: The user under whose name the secret of decoys is stored, as its salt; no real user can have this name.
DECOY_USER: Final = ""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The credential that a server stores for a user's password and one mechanism."""

    mechanism: str
    iterations: int
    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)

    def has_password(self, password: bytes) -> bool:
        """Whether the credentials are of a password. Takes some ten milliseconds, without blocking other threads."""
        salted = salted_password(self.mechanism, password, self.salt, self.iterations)
        stored_key = digest_of(self.mechanism, client_key_of(self.mechanism, salted))
        return hmac.compare_digest(stored_key, self.stored_key)


def derive_credential(
    mechanism: str, password: bytes, *, salt: bytes | None = None, iterations: int = ITERATIONS
) -> ScramCredential:
    """The credential of a password, with a random salt if none is given. ``mechanism`` is one of :data:`HASHES`."""
    salt = os.urandom(SALT_BYTES) if salt is None else salt
    salted = salted_password(mechanism, password, salt, iterations)
    stored_key = digest_of(mechanism, client_key_of(mechanism, salted))
    return ScramCredential(mechanism, iterations, salt, stored_key, server_key_of(mechanism, salted))


def decoy_of(mechanism: str, user: str, secret: bytes) -> ScramCredential:
    """The credential of a user that does not exist: no password has it, and its salt is the same each time.

    So a stranger cannot find out which users exist, as long as ``secret`` stays secret and the same.
    """
    name = user.encode(errors="surrogatepass")
    salt = hmac.digest(secret, b"salt %s %s" % (mechanism.encode(), name), "sha256")[:SALT_BYTES]
    size = hashlib.new(HASHES[mechanism]).digest_size
    return ScramCredential(mechanism, ITERATIONS, salt, os.urandom(size), os.urandom(size))


def salted_password(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    """``SaltedPassword``. As in Kafka, the password's bytes are taken as they are, without SASLprep."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)


def client_key_of(mechanism: str, salted: bytes) -> bytes:
    """``ClientKey``."""
    return hmac.digest(salted, b"Client Key", HASHES[mechanism])


def server_key_of(mechanism: str, salted: bytes) -> bytes:
    """``ServerKey``."""
    return hmac.digest(salted, b"Server Key", HASHES[mechanism])


def digest_of(mechanism: str, data: bytes) -> bytes:
    """``H``: the hash of the mechanism."""
    return hashlib.new(HASHES[mechanism], data).digest()
