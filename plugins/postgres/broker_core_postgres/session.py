"""What the plugin's sessions set, and how a transaction begins where nothing may outlive one.

Directly at a server, a session is set up once, after connecting: read-only, with a time limit for each statement, and
every statement is prepared once per connection. Behind a pooler that pools transactions (pgbouncer) neither holds, as
the next transaction may run in another session of the server: there each use is one transaction that sets the same
with ``SET LOCAL``, and no statement has a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from broker_core_postgres.dsn import APPLICATION

__all__ = ["Session"]

_NAME: Final = re.compile(r"[a-z_]+(?:\.[a-z_]+)?")
#: Statements that a connection remembers; each question has the form of one of a few.
_STATEMENTS: Final = 200
#: A transaction of ours never waits for anything but the next statement.
_IDLE_IN_TRANSACTION: Final = 60.0


@dataclass(frozen=True, slots=True)
class Session:
    """``statement_timeout`` in seconds; ``prepared`` is off behind a pooler; ``settings`` are any others of the server.

    Raises :exc:`ValueError` for what is no setting.
    """

    statement_timeout: float = 10.0
    prepared: bool = True
    application_name: str = APPLICATION
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.settings.items():
            if not _NAME.fullmatch(name) or "\0" in value:
                raise ValueError(f"not a setting of PostgreSQL: {name!r}")

    @property
    def statement_cache_size(self) -> int:
        return _STATEMENTS if self.prepared else 0

    @property
    def opening(self) -> str:
        """What a new session runs, or nothing."""
        if not self.prepared:
            return ""
        return _joined("SET", {"default_transaction_read_only": "on", **self._all()})

    def begin(self, *, snapshot: bool) -> str:
        """What begins a use of the connection, in one round trip; nothing where a statement needs no transaction.

        With ``snapshot`` all statements of the use see the same state.
        """
        level = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if snapshot else "BEGIN READ ONLY"
        if self.prepared:
            return level if snapshot else ""
        return f"{level}; {_joined('SET LOCAL', self._all())}"

    def _all(self) -> dict[str, str]:
        return {
            "statement_timeout": str(max(1, round(self.statement_timeout * 1000))),
            "idle_in_transaction_session_timeout": str(round(_IDLE_IN_TRANSACTION * 1000)),
            **self.settings,
        }


def _joined(verb: str, settings: Mapping[str, str]) -> str:
    # SET takes no parameters; names are checked above, and a value is one literal, whatever the server's settings.
    return "; ".join(f"{verb} {name} = {_literal(value)}" for name, value in settings.items())


def _literal(value: str) -> str:
    doubled = value.replace("\\", "\\\\").replace("'", "''")
    return f"E'{doubled}'"
