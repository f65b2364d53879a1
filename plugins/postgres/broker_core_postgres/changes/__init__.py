"""Changes of topics: the database's change log, LISTEN/NOTIFY, and versions that went back after a restore."""

from broker_core_postgres.changes.change_log import PostgresChangeLog
from broker_core_postgres.changes.listen_notify import VERSIONS_QUERY, TopicsListener
from broker_core_postgres.changes.version_history import VersionHistory

__all__ = [
    "VERSIONS_QUERY",
    "PostgresChangeLog",
    "TopicsListener",
    "VersionHistory",
]
