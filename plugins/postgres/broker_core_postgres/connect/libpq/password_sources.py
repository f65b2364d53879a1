"""Sources of passwords, read anew for every connection, so that a password can change without a restart.

The first source that exists counts: the connection string, ``password_file`` or ``password_env`` of the settings, the
service file, ``PGPASSWORD``, then libpq's password file (``passfile``, ``PGPASSFILE`` or ``~/.pgpass``). Neither errors
nor ``repr`` show a password.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from broker_core_postgres.connect.libpq.dsn_error import DsnError
from broker_core_postgres.connect.libpq.pgpass import read_pgpass

__all__ = ["PasswordSource"]

#: More than any password; bounds the bytes that are read from a wrong path (a device, a log).
_LONGEST: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class PasswordSource:
    """The sources of a password. It holds a password only if the connection string or the service gave one."""

    given: str | None = field(default=None, repr=False)
    file: Path | None = None
    variable: str | None = None
    service: str | None = field(default=None, repr=False)
    passfile: Path | None = None

    def password(
        self, environment: Mapping[str, str], host: str, port: int, database: str, user: str
    ) -> str | None:
        """The password for a host, or ``None`` if no source has one. Reads files.

        Raises :exc:`DsnError` for a missing file or variable that the settings name.
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


def _whole_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer must not block
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise DsnError(f"password_file: {path} is no password: more than {_LONGEST} bytes")
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise DsnError(f"password_file: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DsnError(f"password_file: {path} is not UTF-8") from None
