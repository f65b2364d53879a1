"""libpq's rules of addresses and passwords: connection strings, services, the environment, ``~/.pgpass``.

They are read here, since asyncpg 0.32 reads them otherwise than libpq:

- It ignores ``PGSERVICE``, ``PGAPPNAME``, ``PGOPTIONS`` and ``PGCONNECT_TIMEOUT``, and refuses a ``%`` in a service.
- It sends an option that it does not know to the server: ``connect_timeout``, ``load_balance_hosts``, misspelt ones.
- It gives several hosts one timeout, and the one password that ``~/.pgpass`` has for the first of them.
- It takes ``\\:`` in ``~/.pgpass`` as it stands, and finds no entry for the folder of a Unix socket.
- Its errors quote what it cannot read, which may be a piece of a password.

TLS is asyncpg's: it reads libpq's options as libpq does.
"""
