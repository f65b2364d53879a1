"""Apache's hash of passwords, ``$apr1$``: a thousand rounds of MD5.

`htpasswd -m` and `openssl passwd -apr1` make it. Pulsar's own method `basic` has it, and no maintained library does.
New files had better use bcrypt.
"""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = ["apr1_digest"]

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
