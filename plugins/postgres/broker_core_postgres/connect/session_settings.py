"""Settings of the plugin's sessions at the server, and the beginnings of their transactions.

Connected to a server itself, a session is set up once: read-only, with a time limit for each statement, and statements
are prepared once for a connection. A pooler of transactions (pgbouncer) allows neither, since the next transaction may
run in another session of the server. There, each use is one transaction with these settings by ``SET LOCAL``, and
statements have no names.

A transaction of several statements locks the table before it takes its snapshot. A snapshot that was taken while the
reader waited for a ``TRUNCATE`` to commit would see neither the old rows nor the new ones, and the answer would be
empty. ``LOCK TABLE`` takes no snapshot. A single statement needs no such lock: at the level READ COMMITTED PostgreSQL
takes its snapshot after its locks.
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
#: Prepared statements that a connection keeps; questions have a few forms only.
_STATEMENTS: Final = 200
#: The share of a statement's time that it may wait for a lock. Less than 1, so that errors distinguish a lock from a
#: slow search.
_LOCK_SHARE: Final = 0.9
#: Settings of transactions that are always set, since the database and the role may have other defaults.
_TRANSACTIONS: Final = {
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
}
#: For a single statement: planning takes longer than finding a few rows, and all ranges of names have the same plan.
_ONE_PLAN: Final = {"plan_cache_mode": "force_generic_plan"}
#: For a transaction: properties and substrings need a plan for their values, which find ten rows or a million.
_PLAN_EACH: Final = {"plan_cache_mode": "force_custom_plan"}
#: The plugin's transactions have no pauses between their statements but for memory and matching.
_IDLE_IN_TRANSACTION: Final = 60.0


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """The settings of a session. ``server_settings`` are further settings of PostgreSQL.

    ``one_plan``: a single statement is planned once for a connection, not for each set of values.

    Raises :exc:`ValueError` for a name that is no setting.
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
        """Whether statements are prepared. Not with a pooler of transactions in between."""
        return self.settings.prepared_statements == "on"

    @property
    def statement_cache_size(self) -> int:
        return _STATEMENTS if self.prepared else 0

    @property
    def setup_sql(self) -> str:
        """The SQL that sets up a new session; empty with a pooler of transactions."""
        if not self.prepared:
            return ""
        plans = _ONE_PLAN if self.one_plan else {}
        return _joined("SET", {**_TRANSACTIONS, **plans, **self._all()})

    def begin_sql(self, *, snapshot: bool, lock: str | None = None) -> str:
        """The SQL that begins one use of a connection, in one round trip; empty if no transaction is needed.

        With ``snapshot`` all statements of the use see the same state. ``lock`` is the table that they read, as SQL:
        its rows stay readable, from before the snapshot to the end of the transaction.
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
    # SET takes no parameters: the names are checked above, the values quoted.
    return "; ".join(f"{verb} {name} = {quote_literal(value)}" for name, value in settings.items())
