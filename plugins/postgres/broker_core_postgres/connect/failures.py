"""Failures of the database: for each error a reason, a text for the client, and whether the connection is lost.

The texts are the plugin's own, since a server's message may quote values and its address is not for clients. The log
has the server's message. A failure is never an empty or shortened listing; the plugin's ``on_failure`` decides what the
broker does about it. docs/explanation/promises.md#exact-or-an-error
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from typing import Final

import asyncpg

from broker_core.errors import Cause, ListingFailed
from broker_core_postgres.connect.libpq import DsnError

__all__ = [
    "DRIVER_ERRORS",
    "REASONS",
    "ConnectionBroke",
    "DatabaseFailed",
    "failure_of",
    "is_connection_lost",
    "server_message",
]

#: Errors of the server, of the driver and of the network. The driver raises the third for a connection that just broke.
DRIVER_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
)


@dataclass(frozen=True, slots=True)
class _Meaning:
    reason: str
    text: str
    cause: Cause = Cause.PLUGIN
    #: False if the question caused the failure: another question may be answered.
    counts: bool = True


_LATER: Final = Cause.UNAVAILABLE

#: Errors of a prepared statement that exists already, or does not: the session is not the one that prepared it.
_POOLED: Final = _Meaning(
    "settings",
    'a pgbouncer pools transactions between the plugin and PostgreSQL: set prepared_statements = "off" and listen_dsn',
)
#: Meanings by SQLSTATE, and by its class (the first two characters). PostgreSQL's manual, appendix A.
_STATES: Final[dict[str, _Meaning]] = {
    "28P01": _Meaning(
        "authentication", "PostgreSQL refused the password: check the user and where the password is from"
    ),
    "28000": _Meaning(
        "authentication",
        "PostgreSQL refused the login: check the user, and pg_hba.conf for the address and for TLS",
    ),
    "3D000": _Meaning(
        "database", "the database of the connection string does not exist at this PostgreSQL server"
    ),
    "53300": _Meaning(
        "connections",
        "PostgreSQL has no free connection: raise its max_connections, or lower pool_max of the plugin",
        Cause.QUEUE,
    ),
    "53100": _Meaning("disk_full", "the disk of PostgreSQL is full: make room there"),
    "53200": _Meaning("memory", "PostgreSQL is out of memory: lower its work_mem or max_connections"),
    "53400": _Meaning(
        "temp_files",
        "a listing needed more temporary files than PostgreSQL allows: raise its temp_file_limit or work_mem",
        counts=False,
    ),
    "57014": _Meaning(
        "statement_timeout",
        "PostgreSQL ended the statement, which took longer than statement_timeout: ask with a narrower topics pattern, "
        "or look for load at the database",
        counts=False,
    ),
    "57P01": _Meaning(
        "shutdown", "PostgreSQL shut the connection down: it stops, or an administrator ended it", _LATER
    ),
    "57P02": _Meaning("crash", "PostgreSQL ended all connections after a crash and recovers", _LATER),
    "57P03": _Meaning(
        "starting", "PostgreSQL starts up, recovers or shuts down, and takes no connections yet", _LATER
    ),
    "57P05": _Meaning(
        "shutdown", "PostgreSQL closed a connection that was idle (idle_session_timeout)", _LATER
    ),
    "55P03": _Meaning(
        "locked",
        "the topics are locked, as by a migration or a TRUNCATE: ask again when it is done",
        _LATER,
        counts=False,
    ),
    "40P01": _Meaning(
        "locked", "PostgreSQL ended the statement to resolve a deadlock: ask again", _LATER, counts=False
    ),
    "40001": _Meaning(
        "conflict",
        "PostgreSQL ended the statement, which was in the way of replication or of a change: ask again",
        _LATER,
        counts=False,
    ),
    "25006": _Meaning(
        "read_only",
        "PostgreSQL is read-only: a standby, or default_transaction_read_only is on; write to the primary",
    ),
    "42501": _Meaning(
        "privilege",
        "the user may not read the topics: grant it the role broker_core_reader, or select on the relation",
    ),
    "42P01": _Meaning(
        "schema",
        "a table of the topics is missing: run `broker-core postgres migrate`, or check the relation",
    ),
    "3F000": _Meaning("schema", "the schema broker_core is missing: run `broker-core postgres migrate`"),
    "42703": _Meaning(
        "schema",
        "a column of the topics is missing: run `broker-core postgres migrate`, or check the relation",
    ),
    "42883": _Meaning(
        "schema",
        "a function or operator is missing: run `broker-core postgres migrate`, or check the relation",
    ),
    "42804": _Meaning("schema", "a column of the topics changed its type: check the relation"),
    "25P04": _Meaning(
        "statement_timeout", "a transaction took longer than PostgreSQL's transaction_timeout", counts=False
    ),
    "25P03": _Meaning("statement_timeout", "a transaction was idle longer than PostgreSQL allows"),
    "42P05": _POOLED,
    "26000": _POOLED,
}
_CLASSES: Final[dict[str, _Meaning]] = {
    "08": _Meaning("lost", "the connection to PostgreSQL broke", _LATER),
    "28": _STATES["28000"],
    "42": _Meaning("schema", "a statement does not fit the database: run `broker-core postgres status`"),
    "53": _Meaning("resources", "PostgreSQL has not enough resources: see its log"),
    "57": _Meaning("shutdown", "an operator of PostgreSQL intervened: see its log", _LATER),
    "58": _Meaning("storage", "PostgreSQL cannot read or write its files: see its log"),
    "XX": _Meaning("corrupt", "PostgreSQL found its own data broken: see its log"),
}
#: Meanings of failures without a SQLSTATE, by their reasons.
_OTHERS: Final = {
    meaning.reason: meaning
    for meaning in (
        _Meaning(
            "unreachable", "PostgreSQL cannot be reached: is it running, and is the address right?", _LATER
        ),
        _Meaning("timeout", "PostgreSQL did not answer in time", _LATER),
        _Meaning(
            "tls", "TLS with PostgreSQL failed: check sslmode, sslrootcert and the server's certificate"
        ),
        _Meaning(
            "no_primary",
            "no host of the connection string is what target_session_attrs asks for: is a failover under way?",
            _LATER,
        ),
        _Meaning(
            "pool_full",
            "too many listings wait for a connection to PostgreSQL: raise pool_max, or ask again later",
            Cause.QUEUE,
        ),
        _Meaning(
            "pool_timeout",
            "no connection to PostgreSQL became free in time: raise pool_max, or ask again later",
            Cause.QUEUE,
        ),
        _Meaning("closed", "the plugin is shutting down", _LATER),
        _Meaning("settings", "the connection to PostgreSQL is not set up right: see the log of the broker"),
        _Meaning("other", "a statement failed at PostgreSQL: see the log of the broker"),
    )
}

#: The values of a failure's ``reason``, for the metrics.
REASONS: Final = frozenset(
    meaning.reason for meaning in (*_STATES.values(), *_CLASSES.values(), *_OTHERS.values())
)


class DatabaseFailed(ListingFailed):
    """The database gave no answer. ``reason`` is one of :data:`REASONS`, ``state`` the SQLSTATE if there is one.

    ``lost`` says that the connection broke: the statement may succeed on another connection.
    """

    def __init__(self, meaning: _Meaning, *, state: str | None = None, lost: bool = False) -> None:
        is_shown = state is not None and meaning.reason == "other"
        text = f"{meaning.text} (SQLSTATE {state})" if is_shown else meaning.text
        super().__init__(text, cause=meaning.cause, reason=meaning.reason, counts=meaning.counts)
        self.state = state
        self.lost = lost

    @classmethod
    def of(cls, reason: str) -> DatabaseFailed:
        """A failure without a SQLSTATE, such as ``pool_full``, ``pool_timeout``, ``closed`` or ``no_primary``."""
        return cls(_OTHERS[reason])


class ConnectionBroke(ConnectionError):
    """A connection was found closed without an error that says why."""


def failure_of(error: BaseException) -> ListingFailed:
    """The failure for an error of asyncpg or of the system. A :exc:`ListingFailed` is returned unchanged."""
    if isinstance(error, ListingFailed):
        return error
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        meaning = _STATES.get(state) or _CLASSES.get(state[:2]) or _OTHERS["other"]
        return DatabaseFailed(meaning, state=state or None, lost=is_connection_lost(error))
    if isinstance(error, DsnError):
        return DatabaseFailed.of("settings")
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return DatabaseFailed.of("no_primary")
    if isinstance(error, ssl.SSLError) or "SSL" in str(error)[:200]:
        return DatabaseFailed.of("tls")
    if isinstance(error, TimeoutError):
        return DatabaseFailed.of("timeout")
    if is_connection_lost(error):
        return DatabaseFailed(_CLASSES["08"], lost=True)
    if isinstance(error, OSError):
        return DatabaseFailed.of("unreachable")
    return DatabaseFailed.of("other")


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection that raised this is gone for a reason outside of its statement."""
    if isinstance(error, DatabaseFailed):
        return error.lost
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state.startswith("08") or state in {"57P01", "57P02", "57P03", "57P05", "25P03"}
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        return _broke(error)
    return isinstance(error, asyncpg.InterfaceError) and "closed" in str(error)


def server_message(error: BaseException) -> str:
    """The message of the server or the system in one line, for the log and for operators, never for clients.

    It holds no password: servers do not send passwords back, and the driver does not quote them.
    """
    if isinstance(error, asyncpg.PostgresError):
        return f"{' '.join(str(getattr(error, 'message', '') or error).split())} (SQLSTATE {error.sqlstate})"
    if isinstance(error, TimeoutError) and not str(error):
        return "timed out"
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and (error.errno or 0) > 0:
        return os.strerror(error.errno or 0)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror  # a failed name lookup has error numbers of its own
    return " ".join(str(error).split()) or type(error).__name__


def _broke(error: OSError) -> bool:
    return isinstance(
        error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError | ConnectionBroke
    )
