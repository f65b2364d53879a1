"""What the plugin's sessions set, and how a transaction begins where nothing may outlive one.

Directly at a server, a session is set up once, after connecting: read-only, with a time limit for each statement, and
every statement is prepared once per connection. Behind a pooler that pools transactions (pgbouncer) neither holds, as
the next transaction may run in another session of the server: there each use is one transaction that sets the same
with ``SET LOCAL``, and no statement has a name.

A snapshot that is kept is taken behind a lock of the table that is read. ``TRUNCATE`` is not undone for snapshots from
before it: one that was taken while the reader waited for a ``TRUNCATE`` with its new rows to commit would see neither
the old rows nor the new ones, and the answer would be empty. ``LOCK TABLE`` takes no snapshot. A statement by itself
needs none of that: PostgreSQL takes its snapshot behind its locks, as long as no other isolation level is the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from broker_core_postgres.connect.open_connection import APPLICATION_NAME
from broker_core_postgres.connect.sql_quoting import quote_literal
from broker_core_postgres.settings import PostgresSettings

__all__ = ["SessionSettings"]

_NAME: Final = re.compile(r"[a-z_]+(?:\.[a-z_]+)?")
#: Statements that a connection remembers; each question has the form of one of a few.
_STATEMENTS: Final = 200
#: The part of a statement's time that it may wait for a lock: less, so that the error tells a lock from a long search.
_LOCK_SHARE: Final = 0.9
#: Whatever the database or the role has as its defaults.
_TRANSACTIONS: Final = {
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
}
#: A few rows are found in less time than their statement is planned, which has the same plan for all ranges of names.
_ONE_PLAN: Final = {"plan_cache_mode": "force_generic_plan"}
#: Rows that are found by their values need a plan for the values: one has ten rows, another one a million.
_PLAN_EACH: Final = {"plan_cache_mode": "force_custom_plan"}
#: A transaction of ours never waits for anything but the next statement.
_IDLE_IN_TRANSACTION: Final = 60.0


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """By the plugin's settings; ``server_settings`` are any others of the server.

    ``one_plan``: a statement by itself is planned once for a connection, and not for its values.

    Raises :exc:`ValueError` for what is no setting.
    """

    settings: PostgresSettings
    application_name: str = APPLICATION_NAME
    server_settings: Mapping[str, str] = field(default_factory=dict)
    one_plan: bool = False

    def __post_init__(self) -> None:
        for name, value in self.server_settings.items():
            if not _NAME.fullmatch(name) or "\0" in value:
                raise ValueError(f"not a setting of PostgreSQL: {name!r}")

    @property
    def prepared(self) -> bool:
        """Whether statements are prepared: off behind a pooler."""
        return self.settings.prepared_statements == "on"

    @property
    def statement_cache_size(self) -> int:
        return _STATEMENTS if self.prepared else 0

    @property
    def setup_sql(self) -> str:
        """What a new session runs, or nothing."""
        if not self.prepared:
            return ""
        plans = _ONE_PLAN if self.one_plan else {}
        return _joined("SET", {**_TRANSACTIONS, **plans, **self._all()})

    def begin_sql(self, *, snapshot: bool, lock: str | None = None) -> str:
        """What begins a use of the connection, in one round trip; nothing where a statement needs no transaction.

        With ``snapshot`` all statements of the use see the same state. ``lock`` is the table that they read, as it is
        written in SQL: it keeps its rows from the time before the snapshot until the transaction ends.
        """
        level = "REPEATABLE READ" if snapshot else "READ COMMITTED"
        parts = [f"BEGIN ISOLATION LEVEL {level} READ ONLY"] if snapshot or not self.prepared else []
        if not self.prepared:
            parts.append(_joined("SET LOCAL", self._all()))
        if snapshot:
            parts.append(_joined("SET LOCAL", _PLAN_EACH))
        if snapshot and lock is not None:
            parts.append(f"LOCK TABLE {lock} IN ACCESS SHARE MODE")
        return "; ".join(parts)

    def _all(self) -> dict[str, str]:
        timeout = self.settings.statement_timeout * 1000
        return {
            "statement_timeout": str(max(1, round(timeout))),
            "lock_timeout": str(max(1, round(timeout * _LOCK_SHARE))),
            "idle_in_transaction_session_timeout": str(round(_IDLE_IN_TRANSACTION * 1000)),
            **self.server_settings,
        }


def _joined(verb: str, settings: Mapping[str, str]) -> str:
    # SET takes no parameters; names are checked above, and a value is one literal, whatever the server's settings.
    return "; ".join(f"{verb} {name} = {quote_literal(value)}" for name, value in settings.items())
