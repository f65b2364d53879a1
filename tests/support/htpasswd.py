"""htpasswd files as tests need them: bcrypt of the least cost."""

from __future__ import annotations

from pathlib import Path

import bcrypt

__all__ = ["bcrypt_hash", "write_htpasswd"]


def bcrypt_hash(password: str, *, prefix: str = "2y") -> str:
    """A hash as `htpasswd -B` writes it, of the least cost."""
    return bcrypt.hashpw(password.encode()[:72], bcrypt.gensalt(4)).decode().replace("$2b$", f"${prefix}$", 1)


def write_htpasswd(path: Path, **users: str) -> Path:
    """A file with these users and passwords."""
    path.write_text("".join(f"{user}:{bcrypt_hash(password)}\n" for user, password in users.items()))
    return path
