"""``~/.pgpass``: libpq's file of passwords by host, port, database and user."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import structlog

__all__ = ["read_pgpass"]

_log = structlog.get_logger(__name__)


def read_pgpass(path: Path | None, host: str, port: int, database: str, user: str) -> str | None:
    """The password of the first entry that matches, by libpq's rules: ``*``, escapes by a backslash, mode 0600.

    ``host`` is a name, or the folder of a Unix socket, which the entries of ``localhost`` match too.
    """
    if path is None:
        return None
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            # libpq ignores such a file too, with a warning.
            _log.warning("password file is not used: others may read it (chmod 0600)", file=str(path))
            return None
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                entry = list(_fields(line.rstrip("\r\n")))
                if line.startswith("#") or len(entry) < 5:
                    continue
                hosts = {host, "localhost"} if host.startswith("/") else {host}
                wanted = ({*hosts, "*"}, {str(port), "*"}, {database, "*"}, {user, "*"})
                if all(value in values for value, values in zip(entry, wanted, strict=False)):
                    return entry[4]
    except (OSError, UnicodeDecodeError) as error:
        if not isinstance(error, FileNotFoundError):
            _log.warning("password file cannot be read", file=str(path), error=type(error).__name__)
    return None


def _fields(line: str) -> Iterator[str]:
    """The fields between colons. A backslash escapes the next character."""
    part: list[str] = []
    letters = iter(line)
    for letter in letters:
        if letter == "\\":
            part.append(next(letters, ""))
        elif letter == ":":
            yield "".join(part)
            part = []
        else:
            part.append(letter)
    yield "".join(part)
