"""Service files: connection options by the name of a service (PostgreSQL's manual, "The Connection Service File")."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from broker_core_postgres.connect.libpq.connection_options import checked_options
from broker_core_postgres.connect.libpq.dsn_error import DsnError

__all__ = ["read_service"]


def read_service(name: str, file: Path | None, env: Mapping[str, str]) -> dict[str, str]:
    """The options of a service. ``file``, ``PGSERVICEFILE`` or ``~/.pg_service.conf`` is read, then the system's file.

    Raises :exc:`DsnError`.
    """
    if file is None:
        file = (
            Path(env["PGSERVICEFILE"])
            if env.get("PGSERVICEFILE")
            else Path("~/.pg_service.conf").expanduser()
        )
    system = Path(env.get("PGSYSCONFDIR", "/etc/postgresql-common")) / "pg_service.conf"
    for path in (file, system):
        sections = configparser.RawConfigParser(strict=False, comment_prefixes=("#",), delimiters=("=",))
        try:
            with path.open(encoding="utf-8") as lines:
                sections.read_file(lines)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise DsnError(f"service file {path}: {error.strerror}") from None
        except (configparser.Error, UnicodeDecodeError):
            raise DsnError(
                f"service file {path} cannot be read: expected [name] and key=value lines"
            ) from None
        if sections.has_section(name):
            return checked_options(dict(sections.items(name)), f"service {name!r} of {path}")
    raise DsnError(f"no service {name!r} in {file} or {system}")
