"""The htpasswd file: users with the hashes of their passwords, bcrypt or ``$apr1$``.

``$apr1$`` is Apache's hash, a thousand rounds of MD5: `htpasswd -m` and `openssl passwd -apr1` make it. Pulsar's own
method `basic` has it, and no maintained library does. New files had better use bcrypt.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import bcrypt

from broker_core.access.principal import Principal

__all__ = ["LONGEST_PASSWORD", "apr1_digest", "matches", "read_htpasswd"]

#: Bytes of a password: the time of ``$apr1$`` grows with it.
LONGEST_PASSWORD: Final = 512
#: The bytes that bcrypt reads of a password; ``htpasswd`` cuts it there too.
_OF_BCRYPT: Final = 72
#: Two to the power of this many rounds take five seconds: more is a mistake.
_HIGHEST_COST: Final = 16
_LARGEST: Final = 64 * 1024**2
_BCRYPT: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}", re.ASCII)
_APR1: Final = re.compile(r"\$apr1\$([^$:]{1,8})\$([./A-Za-z0-9]{22})", re.ASCII)


def read_htpasswd(path: Path) -> Mapping[str, str]:
    """Users with their hashes. Raises :exc:`OSError`, or :exc:`ValueError` that names the line and shows no hash."""
    with path.open("rb") as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError(f"{path} is larger than {_LARGEST} bytes: it is no htpasswd file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8") from None
    users: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        user, colon, hashed = entry.partition(":")
        wrong = _problem(user, hashed) if colon else "it is not USER:HASH"
        if not wrong and user in users:
            wrong = f"the user {user!r} is there twice"
        if wrong:
            raise ValueError(f"{path}, line {number}: {wrong}")
        users[user] = hashed
    if not users:
        raise ValueError(f"{path} has no user")
    return users


def _problem(user: str, hashed: str) -> str | None:
    try:
        Principal(user)
    except ValueError as error:
        return f"the user is no role: {error}"
    found = _BCRYPT.fullmatch(hashed)
    if found is not None:
        cost = int(found[1])
        if 4 <= cost <= _HIGHEST_COST:
            return None
        return f"the cost of bcrypt is {cost}: from 4 to {_HIGHEST_COST} are possible"
    if _APR1.fullmatch(hashed):
        return None
    return "the hash is neither bcrypt (htpasswd -B) nor $apr1$ (htpasswd -m)"


def matches(hashed: str, password: bytes) -> bool:
    """Whether a password has this hash. Bcrypt takes some 70 ms, five seconds at most, and holds up no other thread."""
    if len(password) > LONGEST_PASSWORD or b"\x00" in password:
        return False
    apr1 = _APR1.fullmatch(hashed)
    if apr1 is not None:
        return hmac.compare_digest(apr1_digest(password, apr1[1].encode()), apr1[2])
    return bcrypt.checkpw(password[:_OF_BCRYPT], hashed.encode())


_MAGIC: Final = b"$apr1$"
_ALPHABET: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#: The bytes of the digest in the order in which three of them make four characters.
_ORDER: Final = ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5))


def apr1_digest(password: bytes, salt: bytes) -> str:
    """The 22 characters after ``$apr1$SALT$``. Its time grows with the length of the password: bound that."""
    inner = _md5(password + salt + password)
    mixed = password + _MAGIC + salt + (inner * (len(password) // 16 + 1))[: len(password)]
    length = len(password)
    while length:
        mixed += b"\x00" if length & 1 else password[:1]
        length >>= 1
    digest = _md5(mixed)
    for turn in range(1000):
        text = password if turn & 1 else digest
        if turn % 3:
            text += salt
        if turn % 7:
            text += password
        digest = _md5(text + (digest if turn & 1 else password))
    groups = [digest[a] << 16 | digest[b] << 8 | digest[c] for a, b, c in _ORDER]
    return "".join(_letters(group, 4) for group in groups) + _letters(digest[11], 2)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _letters(value: int, count: int) -> str:
    return "".join(_ALPHABET[value >> 6 * place & 63] for place in range(count))
