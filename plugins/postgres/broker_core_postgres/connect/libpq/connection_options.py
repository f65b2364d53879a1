"""The known options of libpq, by the names that connection strings and service files use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from broker_core_postgres.connect.libpq.dsn_error import DsnError

__all__ = ["ENVIRONMENT", "KNOWN_OPTIONS", "TLS_OPTIONS", "checked_options"]

#: TLS options, which the driver reads itself, with libpq's environment variables.
TLS_OPTIONS: Final = {
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
#: The environment variable of each option, for options that neither the string nor the service gives.
ENVIRONMENT: Final = {
    "host": "PGHOST",
    "port": "PGPORT",
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "application_name": "PGAPPNAME",
    "options": "PGOPTIONS",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "load_balance_hosts": "PGLOADBALANCEHOSTS",
    **{key: variable for key, variable in TLS_OPTIONS.items() if variable},
}
KNOWN_OPTIONS: Final = frozenset({*ENVIRONMENT, *TLS_OPTIONS, "password", "passfile", "service", "database"})
#: Options that the driver does not have, with the values that mean its default; ``None``: any value.
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


def checked_options(options: Mapping[str, str], where: str) -> dict[str, str]:
    """Check options and return them by libpq's names (``database`` is ``dbname``). Errors name the place ``where`` they
    are set.

    Raises :exc:`DsnError` for an option that is unknown or unsupported.
    """
    found = {}
    for key, value in options.items():
        if key in _HARMLESS:
            allowed = _HARMLESS[key]
            if allowed is not None and value not in allowed:
                raise DsnError(f"{where}: this driver has no {key}: leave it out")
        elif key not in KNOWN_OPTIONS:
            shown = (
                key if re.fullmatch(r"[a-z_]{1,40}", key) else "one of them"
            )  # it may be a piece of a password
            raise DsnError(f"{where}: unknown option: {shown} (options are those of libpq)")
        else:
            found["dbname" if key == "database" else key] = value
    return found
