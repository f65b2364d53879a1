"""Verdicts on passwords of one version of the file, kept by a keyed hash of user and password."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Final

from broker_core.access.authentication.basic.htpasswd_file import matches
from broker_core.memory import BoundedCache

__all__ = ["Verdicts"]

#: Bytes of good verdicts, and of bad ones: some 8,000 each. Bad ones never drive out good ones.
_KEPT: Final = 4 * 1024**2


class Verdicts:
    """The users of one version of the file, and the verdicts on the passwords that were tried.

    The key of the hash is of this object alone, and of this process: a kept verdict reveals nothing of a password.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self._hashes = tuple(users.values())
        self._key = os.urandom(32)
        self._kept: dict[bool, BoundedCache[bytes, bool]] = {
            verdict: BoundedCache(_KEPT) for verdict in (True, False)
        }

    def __len__(self) -> int:
        return len(self._users)

    def hash_of(self, user: str) -> str | None:
        """The hash of a user's password, ``None`` if there is no such user."""
        return self._users.get(user)

    def digest(self, user: str, password: bytes) -> bytes:
        """The keyed hash of user and password."""
        name = user.encode(errors="surrogatepass")
        return hashlib.blake2b(
            b"%d:%b%b" % (len(name), name, password), key=self._key, digest_size=32
        ).digest()

    def kept(self, digest: bytes) -> bool | None:
        """The known verdict, ``None`` if there is none."""
        return next((verdict for verdict, kept in self._kept.items() if kept.get(digest)), None)

    def decide(self, user: str, password: bytes) -> bool:
        """Verify a password: long work, for a thread. An unknown user takes as long as one of the file."""
        hashed = self._users.get(user)
        if hashed is None:
            # Always the same hash for a name, as if it were a user of the file.
            place = int.from_bytes(self.digest(user, b"")) % len(self._hashes)
            matches(self._hashes[place], password)
            return False
        return matches(hashed, password)

    def keep(self, digest: bytes, *, verdict: bool) -> None:
        """Keep a verdict."""
        self._kept[verdict].put(digest, True, len(digest))
