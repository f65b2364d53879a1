"""The htpasswd file: users with the hashes of their passwords, bcrypt or ``$apr1$``."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import bcrypt

from broker_core.access.authentication.basic.apr1_hash import apr1_digest
from broker_core.access.principal import Principal

__all__ = ["LONGEST_PASSWORD", "matches", "read_htpasswd"]

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
