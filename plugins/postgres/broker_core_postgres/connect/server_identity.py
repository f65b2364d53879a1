"""Which server connections are to: a version says something only within one history of one database cluster.

After a failover to a standby that had not received all of it, or where a backup was restored, a namespace may have a
*smaller* version than was seen before, and later reach the same numbers with other topics. PostgreSQL names histories:
a cluster has a system identifier, and each promotion or recovery to a point in time begins a new timeline (manual,
26.3.5). Restoring a dump into the same cluster does neither: that is found by the version that went back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import asyncpg
import structlog

__all__ = ["ServerIdentity"]

_log = structlog.get_logger(__name__)

#: On a primary the timeline that it writes now: the control file has the last checkpoint's, an older one after a
#: promotion. The name of a file of the write-ahead log begins with it, as eight hexadecimal digits.
_QUERY: Final = """
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system())::text || '/' ||
  CASE WHEN pg_catalog.pg_is_in_recovery()
    THEN pg_catalog.lpad(pg_catalog.upper(pg_catalog.to_hex(
      (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()))), 8, '0')
    ELSE pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8)
  END
"""


class ServerIdentity:
    """Remembers the history of the last connection, and tells when a new one has another."""

    def __init__(self, on_other: Callable[[], None] | None = None) -> None:
        self.known: str | None = None
        self.changes = 0
        self._on_other = on_other

    async def check(self, connection: Any) -> None:
        """Compare a new connection. A server that does not tell (some hosted ones) is taken for the same one."""
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
            self.changes += 1
            _log.warning(
                "PostgreSQL is another server, or has another history: what was remembered is dropped"
            )
            if self._on_other is not None:
                self._on_other()
        self.known = identity
