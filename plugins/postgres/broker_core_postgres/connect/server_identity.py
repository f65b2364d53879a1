"""Recognizing another database server, or another history of the same one: a failover, a restored base backup.

A version is comparable only within one history. After a failover to a standby that lacked the last changes, or after
restoring a backup, a namespace may have a *smaller* version than before, and reach the same numbers with other topics.
PostgreSQL identifies histories: a cluster has a system identifier, and each promotion or point-in-time recovery begins
a new timeline (manual, 26.3.5). Restoring a dump into the same cluster changes neither;
:mod:`..changes.version_history` finds it by the smaller version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import asyncpg
import structlog

__all__ = ["ServerIdentity"]

_log = structlog.get_logger(__name__)

#: On a primary, the timeline of the write-ahead log's current file, whose name begins with it as eight hexadecimal
#: digits. After a promotion the control file still has the old timeline, until the next checkpoint.
_QUERY: Final = """
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system())::text || '/' ||
  CASE WHEN pg_catalog.pg_is_in_recovery()
    THEN pg_catalog.lpad(pg_catalog.upper(pg_catalog.to_hex(
      (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()))), 8, '0')
    ELSE pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)
  END
"""


class ServerIdentity:
    """Remembers the history of the last connection. ``on_other`` is called when a new connection has another one."""

    def __init__(self, on_other: Callable[[], None] | None = None) -> None:
        self.known: str | None = None
        self._on_other = on_other

    async def check(self, connection: Any) -> None:
        """Compare a new connection. A server that hides its identity (some hosted ones do) counts as the same one."""
        try:
            identity = await connection.fetchval(_QUERY)
        except (
            asyncpg.InsufficientPrivilegeError,
            asyncpg.FeatureNotSupportedError,
            asyncpg.UndefinedFunctionError,
        ):
            return
        if identity is None or identity == self.known:
            return
        if self.known is not None:
            _log.warning(
                "PostgreSQL is another server, or has another history: what was remembered is dropped"
            )
            if self._on_other is not None:
                self._on_other()
        self.known = identity
