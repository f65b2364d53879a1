"""Where the password of a connection comes from; read again for every connection, so that it can change.

The first of these that is there counts: the connection string, ``password_file`` or ``password_env`` of the settings,
the service file, ``PGPASSWORD``, then the password file of libpq (``passfile``, ``PGPASSFILE`` or ``~/.pgpass``), by
host, port, database and user. No text of an error or of ``repr`` holds one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from broker_core.errors import BrokerCoreError

__all__ = ["DsnError", "PasswordSource", "read_pgpass"]

_log = structlog.get_logger(__name__)

#: No password is as long; a wrong path (a device, a log) must not fill the memory.
_LONGEST: Final = 64 * 1024


class DsnError(BrokerCoreError, ValueError):
    """A connection string, or what belongs to it, cannot be used. The message never quotes it."""


@dataclass(frozen=True, slots=True)
class PasswordSource:
    """Says the password for a host; holds at most the one that was given."""

    given: str | None = field(default=None, repr=False)
    file: Path | None = None
    variable: str | None = None
    service: str | None = field(default=None, repr=False)
    passfile: Path | None = None

    def password(
        self, environment: Mapping[str, str], host: str, port: int, database: str, user: str
    ) -> str | None:
        """The password, or ``None`` where none is needed or known. Reads files.

        Raises :exc:`DsnError` for a file or a variable that the settings name and that is not there.
        """
        if self.given is not None:
            return self.given
        if self.file is not None:
            return _whole_file(self.file)
        if self.variable is not None:
            password = environment.get(self.variable)
            if password is None:
                raise DsnError(f"password_env: the environment has no variable {self.variable}")
            return password
        if self.service is not None:
            return self.service
        if environment.get("PGPASSWORD"):
            return environment["PGPASSWORD"]
        return read_pgpass(self._passfile(environment), host, port, database, user)

    def _passfile(self, environment: Mapping[str, str]) -> Path | None:
        if self.passfile is not None:
            return self.passfile
        if environment.get("PGPASSFILE"):
            return Path(environment["PGPASSFILE"])
        try:
            return Path.home() / ".pgpass"
        except RuntimeError:  # a user without a home
            return None


def read_pgpass(path: Path | None, host: str, port: int, database: str, user: str) -> str | None:
    """The first entry of a password file of libpq that fits; its rules (``*``, escapes by a backslash, mode 0600).

    ``host`` is the folder of a Unix socket, or a name: a socket's entries are those of ``localhost``.
    """
    if path is None:
        return None
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            return None
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            # As libpq does: such a file is not used, and says so.
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
    """The parts between colons; after a backslash, any character stands for itself."""
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


def _whole_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe that nobody writes must not hold us
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise DsnError(f"password_file: {path} is no password: more than {_LONGEST} bytes")
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise DsnError(f"password_file: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DsnError(f"password_file: {path} is not UTF-8") from None
