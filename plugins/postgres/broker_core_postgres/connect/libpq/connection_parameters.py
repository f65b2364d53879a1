"""Connection parameters, put together of a connection string, a service and the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from typing import Any, Final

from broker_core.quantities import counted
from broker_core_postgres.connect.libpq.connection_options import ENVIRONMENT, TLS_OPTIONS
from broker_core_postgres.connect.libpq.connection_string import ESCAPES, read_connection_string
from broker_core_postgres.connect.libpq.dsn_error import DsnError
from broker_core_postgres.connect.libpq.password_sources import PasswordSource
from broker_core_postgres.connect.libpq.service_file import read_service
from broker_core_postgres.connect.libpq.target_session_attrs import session_attributes

__all__ = ["ConnectionParameters", "ServerAddress"]

_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_SOCKET_FOLDERS: Final = ("/run/postgresql", "/var/run/postgresql", "/tmp")  # noqa: S108 - where servers have them


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """One server: a host name or an address with a port, or the folder of a Unix socket."""

    address: str
    port: int

    def __str__(self) -> str:
        if self.address.startswith("/"):
            return f"{self.address}/.s.PGSQL.{self.port}"
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class ConnectionParameters:
    """A database on one of several hosts, and the login. Neither ``str`` nor ``repr`` shows a password.

    ``session_attributes`` is ``target_session_attrs``. ``connect_timeout`` is in seconds, for each host.
    """

    hosts: tuple[ServerAddress, ...]
    user: str
    database: str
    session_attributes: str = "any"
    connect_timeout: float | None = None
    shuffled: bool = False
    tls: Mapping[str, str] = field(default_factory=dict, repr=False)
    server_settings: Mapping[str, str] = field(default_factory=dict)
    passwords: PasswordSource = field(default_factory=PasswordSource)

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.hosts))}, database {self.database}"

    @classmethod
    def parse(
        cls,
        dsn: str | None = None,
        *,
        password_file: Path | None = None,
        password_env: str | None = None,
        service: str | None = None,
        service_file: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> ConnectionParameters:
        """Read a connection string. The service gives values that the string lacks, and the environment the rest.

        Raises :exc:`DsnError`, which does not quote the string.
        """
        env = os.environ if environment is None else environment
        given = read_connection_string(dsn) if dsn else {}
        name = given.pop("service", None) or service or env.get("PGSERVICE")
        served = read_service(name, service_file, env) if name else {}
        options = {option: env[variable] for option, variable in ENVIRONMENT.items() if env.get(variable)}
        options |= {key: value for key, value in served.items() if key != "password"}
        options |= {key: value for key, value in given.items() if key != "password"}
        for key, value in options.items():
            if "\0" in value:
                raise DsnError(f"{key}: a NUL character")
        hosts = _hosts(options.get("host", ""), options.get("port", ""), named=bool(given or served))
        user = options.get("user") or _system_user()
        passfile = options.get("passfile")
        return cls(
            hosts=hosts,
            user=user,
            database=options.get("dbname") or user,
            session_attributes=session_attributes(options.get("target_session_attrs"), len(set(hosts))),
            connect_timeout=_seconds(options.get("connect_timeout")),
            shuffled=options.get("load_balance_hosts") == "random",
            tls=_tls({key: options[key] for key in TLS_OPTIONS if options.get(key)}),
            server_settings={
                key: options[key] for key in ("application_name", "options") if options.get(key)
            },
            passwords=PasswordSource(
                given=given.get("password"),
                file=password_file,
                variable=password_env,
                service=served.get("password"),
                passfile=Path(passfile) if passfile else None,
            ),
        )

    def login(self, host: ServerAddress) -> dict[str, Any]:
        """The arguments of ``asyncpg.connect`` for one host. Reads password files. Raises :exc:`DsnError`."""
        return {
            "host": host.address,
            "port": host.port,
            "user": self.user,
            "database": self.database,
            # Empty without a password: with ``None`` the driver would look for one itself.
            "password": self.passwords.password(os.environ, host.address, host.port, self.database, self.user)
            or "",
        }


def _hosts(addresses: str, ports: str, *, named: bool) -> tuple[ServerAddress, ...]:
    """The hosts in order. Without any, and with a database ``named``, the server of this machine, as with libpq."""
    if addresses.strip(","):
        names = [name.strip() for name in addresses.split(",")]
    else:
        local = next((each for each in _SOCKET_FOLDERS if any(Path(each).glob(".s.PGSQL.*"))), None)
        if local is None and not named:
            raise DsnError(
                "no database is named: give dsn (postgresql://user@host:5432/database) or service, or set PGHOST or "
                "PGSERVICE in the environment"
            )
        names = [local or "localhost"]
    if "" in names:
        raise DsnError("a host of the connection string is empty")
    numbers = [_port(port.strip()) for port in ports.split(",")]
    if len(numbers) == 1:
        numbers *= len(names)
    if len(numbers) != len(names):
        raise DsnError(
            f"{counted(len(names), 'host')} and {counted(len(numbers), 'port')} do not fit together"
        )
    return tuple(ServerAddress(name, number) for name, number in zip(names, numbers, strict=True))


def _port(text: str) -> int:
    if not text:
        return 5432
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
        raise DsnError(f"a port of the connection string is no number from 1 to 65535 ({ESCAPES})")
    return int(text)


def _seconds(text: str | None) -> float | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise DsnError(
            "connect_timeout: a whole number of seconds is expected; 0 waits as long as is allowed at all"
        )
    return float(text) or None


def _tls(options: dict[str, str]) -> Mapping[str, str]:
    """Check the TLS options. Missing files are found here, since the driver does not name them."""
    mode = options.get("sslmode", "prefer")
    if mode not in _SSL_MODES:
        raise DsnError(f"sslmode: one of {', '.join(_SSL_MODES)} is expected")
    if options.get("sslrootcert") == "system":
        import ssl

        if mode != "verify-full":
            raise DsnError("sslrootcert=system needs sslmode=verify-full, as with libpq")
        options["sslrootcert"] = ssl.get_default_verify_paths().cafile or ""
    if mode != "disable":
        for key in ("sslrootcert", "sslcert", "sslkey", "sslcrl"):
            if key in options and not Path(options[key]).is_file():
                raise DsnError(f"{key}: no such file: {options[key]}")
    return options


def _system_user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):
        raise DsnError("the connection string has no user, and neither has the system") from None
