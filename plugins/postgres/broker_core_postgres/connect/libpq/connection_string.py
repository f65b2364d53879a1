"""Connection strings: ``postgresql://user@host:port,host:port/database?option=value``."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from broker_core_postgres.connect.libpq.connection_options import checked_options
from broker_core_postgres.connect.libpq.dsn_error import DsnError

__all__ = ["ESCAPES", "read_connection_string"]

#: Advice for errors: most strings that cannot be read lack an escape.
ESCAPES: Final = (
    "an @, :, /, ?, # or % in a user name or a password is written as %40, %3A, %2F, %3F, %23, %25"
)


def read_connection_string(dsn: str) -> dict[str, str]:
    """The options of a connection string, by libpq's names. Raises :exc:`DsnError`, which does not quote the string."""
    scheme, separator, _ = dsn.partition("://")
    if not separator or scheme not in {"postgresql", "postgres"}:
        raise DsnError(
            "a connection string begins with postgresql://, as postgresql://user@host:5432/database does"
        )
    try:
        url = urlsplit(dsn)
    except ValueError:
        raise DsnError(f"the connection string is no URL ({ESCAPES})") from None
    if url.fragment or url.netloc.count("@") > 1 or "@" in url.path:
        raise DsnError(f"the connection string cannot be read: {ESCAPES}")
    login, _, hosts = url.netloc.rpartition("@")
    user, colon, password = login.partition(":")
    try:
        query = parse_qsl(url.query, keep_blank_values=True, strict_parsing=True) if url.query else []
    except ValueError:
        raise DsnError(f"the options after ? are no key=value pairs joined by & ({ESCAPES})") from None
    found = {
        "user": unquote(user),
        "host": ",".join(_host_part(host) for host in hosts.split(",")),
        "port": ",".join(_port_part(host) for host in hosts.split(",")),
        "dbname": unquote(url.path.removeprefix("/")),
    }
    found = {key: value for key, value in found.items() if value.strip(",")}
    if colon:
        found["password"] = unquote(password)
    return found | checked_options(dict(query), "the connection string")


def _host_part(text: str) -> str:
    address = re.fullmatch(r"\[([0-9A-Fa-f:.%\w]+)\](?::\d*)?", text)
    return address[1] if address else unquote(text.partition(":")[0])


def _port_part(text: str) -> str:
    return text.rpartition("]")[2].rpartition(":")[2] if ":" in text.rpartition("]")[2] else ""
