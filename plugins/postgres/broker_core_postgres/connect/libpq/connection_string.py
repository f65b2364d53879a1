"""Where to connect to: a connection string, a service file and libpq's environment, read into one :class:`Target`.

The rules are libpq's (PostgreSQL's manual, "Connection Strings" and "The Connection Service File"), read here rather
than by the driver, because asyncpg 0.32 ignores ``PGSERVICE``, hands unknown options to the server, tries hosts one
after the other on one clock, and quotes what it cannot read: a password may be in it.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from getpass import getuser
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from broker_core_postgres.connect.libpq.password_sources import DsnError, PasswordSource

__all__ = ["Host", "Target"]

_ESCAPES: Final = (
    "an @, :, /, ?, # or % in a user name or a password is written as %40, %3A, %2F, %3F, %23, %25"
)
_ATTRIBUTES: Final = frozenset({"any", "read-write", "read-only", "primary", "standby", "prefer-standby"})
#: What the driver does with TLS, by these names. The variables of the environment are libpq's.
_TLS: Final = {
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "sslcrl": "PGSSLCRL",
    "sslpassword": "",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
    "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
}
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_VARIABLES: Final = {
    "host": "PGHOST",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "application_name": "PGAPPNAME",
    "options": "PGOPTIONS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "load_balance_hosts": "PGLOADBALANCEHOSTS",
    **{key: variable for key, variable in _TLS.items() if variable},
}
_KNOWN: Final = frozenset({*_VARIABLES, *_TLS, "password", "passfile", "service", "database"})
#: Options of libpq that this driver has no need of: asking for no more than the default is fine.
_HARMLESS: Final = {
    "channel_binding": {"prefer", "disable"},
    "gssencmode": {"prefer", "disable"},
    "fallback_application_name": None,
    "keepalives": None,
    "keepalives_idle": None,
    "keepalives_interval": None,
    "keepalives_count": None,
    "tcp_user_timeout": None,
}
_SOCKET_FOLDERS: Final = ("/run/postgresql", "/var/run/postgresql", "/tmp")  # noqa: S108 - where servers have them


@dataclass(frozen=True, slots=True)
class Host:
    """One server: a name or an address with a port, or the folder of a Unix socket."""

    address: str
    port: int

    def __str__(self) -> str:
        if self.address.startswith("/"):
            return f"{self.address}/.s.PGSQL.{self.port}"
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Target:
    """A database on one of some hosts, and how to log in. Neither ``str`` nor ``repr`` shows a password.

    ``session_attributes`` is ``target_session_attrs``: with several hosts the default is ``read-write``, so that a host
    that was demoted or made read-only is left. ``connect_timeout`` is in seconds, for each host.
    """

    hosts: tuple[Host, ...]
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
    ) -> Target:
        """Read a connection string; what it leaves open comes from the service, then from the environment.

        Raises :exc:`DsnError`, whose text says what is wrong without quoting the string.
        """
        env = os.environ if environment is None else environment
        given = _of_dsn(dsn) if dsn else {}
        name = given.pop("service", None) or service or env.get("PGSERVICE")
        served = _of_service(name, service_file, env) if name else {}
        options = {option: env[variable] for option, variable in _VARIABLES.items() if env.get(variable)}
        options |= {key: value for key, value in served.items() if key != "password"}
        options |= {key: value for key, value in given.items() if key != "password"}
        for key, value in options.items():
            if "\0" in value:
                raise DsnError(f"{key}: a NUL character")
        hosts = _hosts(options.get("host", ""), options.get("port", ""))
        user = options.get("user") or _system_user()
        attributes = options.get("target_session_attrs") or ("read-write" if _servers(hosts) > 1 else "any")
        if attributes not in _ATTRIBUTES:
            raise DsnError(f"target_session_attrs: one of {', '.join(sorted(_ATTRIBUTES))} is expected")
        settings = {key: options[key] for key in ("application_name", "options") if options.get(key)}
        passfile = options.get("passfile")
        return cls(
            hosts=hosts,
            user=user,
            database=options.get("dbname") or user,
            session_attributes=attributes,
            connect_timeout=_seconds(options.get("connect_timeout")),
            shuffled=options.get("load_balance_hosts") == "random",
            tls=_tls({key: options[key] for key in _TLS if options.get(key)}),
            server_settings=settings,
            passwords=PasswordSource(
                given=given.get("password"),
                file=password_file,
                variable=password_env,
                service=served.get("password"),
                passfile=Path(passfile) if passfile else None,
            ),
        )

    def login(self, host: Host) -> dict[str, Any]:
        """What ``asyncpg.connect`` needs for one host; reads files. Raises :exc:`DsnError`."""
        return {
            "host": host.address,
            "port": host.port,
            "user": self.user,
            "database": self.database,
            # An empty one, where there is none: the driver must not look for another.
            "password": self.passwords.password(os.environ, host.address, host.port, self.database, self.user)
            or "",
        }


def _of_dsn(dsn: str) -> dict[str, str]:
    """The options of a URL by libpq's names."""
    scheme, separator, _ = dsn.partition("://")
    if not separator or scheme not in {"postgresql", "postgres"}:
        raise DsnError(
            "a connection string begins with postgresql://, as postgresql://user@host:5432/database does"
        )
    try:
        url = urlsplit(dsn)
    except ValueError:
        raise DsnError(f"the connection string is no URL ({_ESCAPES})") from None
    if url.fragment or url.netloc.count("@") > 1 or "@" in url.path:
        raise DsnError(f"the connection string cannot be read: {_ESCAPES}")
    login, _, hosts = url.netloc.rpartition("@")
    user, colon, password = login.partition(":")
    try:
        query = parse_qsl(url.query, keep_blank_values=True, strict_parsing=True) if url.query else []
    except ValueError:
        raise DsnError(f"the options after ? are no key=value pairs joined by & ({_ESCAPES})") from None
    found = {
        "user": unquote(user),
        "host": ",".join(_host_part(host) for host in hosts.split(",")),
        "port": ",".join(_port_part(host) for host in hosts.split(",")),
        "dbname": unquote(url.path.removeprefix("/")),
    }
    found = {key: value for key, value in found.items() if value.strip(",")}
    if colon:
        found["password"] = unquote(password)
    return found | _known(dict(query), "the connection string")


def _of_service(name: str, file: Path | None, env: Mapping[str, str]) -> dict[str, str]:
    """A section of the service file."""
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
            return _known(dict(sections.items(name)), f"service {name!r} of {path}")
    raise DsnError(f"no service {name!r} in {file} or {system}")


def _known(options: Mapping[str, str], where: str) -> dict[str, str]:
    found = {}
    for key, value in options.items():
        if key in _HARMLESS:
            allowed = _HARMLESS[key]
            if allowed is not None and value not in allowed:
                raise DsnError(f"{where}: this driver has no {key}: leave it out")
        elif key not in _KNOWN:
            shown = (
                key if re.fullmatch(r"[a-z_]{1,40}", key) else "one of them"
            )  # it may be a piece of a password
            raise DsnError(f"{where}: unknown option: {shown} (options are those of libpq)")
        else:
            found["dbname" if key == "database" else key] = value
    return found


def _host_part(text: str) -> str:
    address = re.fullmatch(r"\[([0-9A-Fa-f:.%\w]+)\](?::\d*)?", text)
    return address[1] if address else unquote(text.partition(":")[0])


def _port_part(text: str) -> str:
    return text.rpartition("]")[2].rpartition(":")[2] if ":" in text.rpartition("]")[2] else ""


def _hosts(addresses: str, ports: str) -> tuple[Host, ...]:
    if addresses.strip(","):
        names = [name.strip() for name in addresses.split(",")]
    else:
        names = [next((each for each in _SOCKET_FOLDERS if any(Path(each).glob(".s.PGSQL.*"))), "localhost")]
    if "" in names:
        raise DsnError("a host of the connection string is empty")
    numbers = [_port(port.strip()) for port in ports.split(",")]
    if len(numbers) == 1:
        numbers *= len(names)
    if len(numbers) != len(names):
        raise DsnError(f"{len(names)} hosts and {len(numbers)} ports do not fit together")
    return tuple(Host(name, number) for name, number in zip(names, numbers, strict=True))


def _port(text: str) -> int:
    if not text:
        return 5432
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
        raise DsnError(f"a port of the connection string is no number from 1 to 65535 ({_ESCAPES})")
    return int(text)


def _servers(hosts: tuple[Host, ...]) -> int:
    return len(set(hosts))


def _seconds(text: str | None) -> float | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise DsnError(
            "connect_timeout: a whole number of seconds is expected; 0 waits as long as is allowed at all"
        )
    return float(text) or None


def _tls(options: dict[str, str]) -> Mapping[str, str]:
    """TLS as the driver takes it; files are looked for here, since it does not say which is missing."""
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
