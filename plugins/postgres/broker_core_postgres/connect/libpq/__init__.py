"""libpq's rules for addresses and passwords: connection strings, services, the environment, ``~/.pgpass``.

This package reads them because asyncpg 0.32 differs from libpq:

- It ignores ``PGSERVICE``, ``PGAPPNAME``, ``PGOPTIONS`` and ``PGCONNECT_TIMEOUT``, and refuses a ``%`` in a service.
- It sends options that it does not know to the server: ``connect_timeout``, ``load_balance_hosts``, misspelt ones.
- It gives several hosts one timeout and one password, the first one that ``~/.pgpass`` has for any of them.
- It does not unescape ``\\:`` in ``~/.pgpass``, and finds no entry for the folder of a Unix socket.
- Its errors quote the part that it cannot read, which may be a piece of a password.

TLS is left to asyncpg, which reads libpq's options as libpq does.
"""

from broker_core_postgres.connect.libpq.connection_parameters import ConnectionParameters, ServerAddress
from broker_core_postgres.connect.libpq.dsn_error import DsnError
from broker_core_postgres.connect.libpq.target_session_attrs import satisfies_attributes

__all__ = [
    "ConnectionParameters",
    "DsnError",
    "ServerAddress",
    "satisfies_attributes",
]
