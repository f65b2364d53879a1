"""The tables of the catalogue's file, and the number of their format.

``application_id`` marks the file as ours and ``user_version`` numbers the schema, so that any other database is refused
before it is touched.
"""

from __future__ import annotations

import sqlite3
import time

from broker_core.names import new_topic_id, topic_id_text

__all__ = [
    "APPLICATION_ID",
    "BY_TOPIC_ID",
    "KAFKA_TABLES",
    "SCHEMA_VERSION",
    "STAMPS",
    "is_blank",
    "make_tables",
    "pragma",
]

APPLICATION_ID = 0x62726F6B  # "brok"
#: The format that this release writes; :mod:`.format_migration` has the earlier ones.
SCHEMA_VERSION = 3

#: Stamps tell versions of one number apart, for each version that the log leads from (log_from and all above).
STAMPS = """CREATE TABLE stamps (
        namespace INTEGER NOT NULL,
        version INTEGER NOT NULL,
        stamp TEXT NOT NULL,
        PRIMARY KEY (namespace, version)
    ) WITHOUT ROWID"""

#: The tables of deleted topics and of Kafka's administration, by name.
KAFKA_TABLES = {
    # The ids of deleted topics whose deletion is not, or no longer, in the log (broker_core/catalog/store/
    # change_log_writer.py), in the order of the deletions. deleted: milliseconds since 1970.
    "deleted_topics": """CREATE TABLE deleted_topics (
        id INTEGER PRIMARY KEY,
        topic_id BLOB NOT NULL,
        namespace INTEGER NOT NULL,
        domain INTEGER NOT NULL,
        base TEXT NOT NULL,
        deleted INTEGER NOT NULL
    )""",
    # Access control lists of Kafka's listener: a row for each binding, with Kafka's numbers of the enumerations.
    "kafka_acls": """CREATE TABLE kafka_acls (
        namespace TEXT NOT NULL,
        resource_type INTEGER NOT NULL,
        name TEXT NOT NULL,
        pattern INTEGER NOT NULL,
        principal TEXT NOT NULL,
        host TEXT NOT NULL,
        operation INTEGER NOT NULL,
        permission INTEGER NOT NULL,
        PRIMARY KEY (namespace, resource_type, name, pattern, principal, host, operation, permission)
    ) WITHOUT ROWID""",
    "kafka_acl_versions": """CREATE TABLE kafka_acl_versions (
        namespace TEXT PRIMARY KEY,
        version INTEGER NOT NULL
    ) WITHOUT ROWID""",
    # SCRAM credentials (RFC 5802): no password can be read from them.
    "kafka_users": """CREATE TABLE kafka_users (
        name TEXT NOT NULL,
        mechanism TEXT NOT NULL,
        iterations INTEGER NOT NULL,
        salt BLOB NOT NULL,
        stored_key BLOB NOT NULL,
        server_key BLOB NOT NULL,
        PRIMARY KEY (name, mechanism)
    ) WITHOUT ROWID""",
}
BY_TOPIC_ID = "CREATE INDEX topics_by_id ON topics (topic_id)"

#: Seconds between two tries to turn on the write-ahead log, about what SQLite's own busy handler waits.
_BUSY_PAUSE = 0.01
_SCHEMA = (
    # The catalogue's random id: versions of namespaces compare under the same id only.
    "CREATE TABLE meta (catalog_id TEXT NOT NULL, created INTEGER NOT NULL)",
    # log_from: the log holds the changes of every version above it. log_rows: how many changes that are.
    """CREATE TABLE namespaces (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        log_from INTEGER NOT NULL,
        log_rows INTEGER NOT NULL
    )""",
    # One row a topic. domain: 0 persistent, 1 non-persistent. base: the local name without partition suffix.
    # listed: which names it stands for (broker_core/names/listed_names.py). properties: JSON with sorted keys, NULL
    # for none. created: milliseconds since 1970. BINARY collation: base is in UTF-8 order. configs: the given configs
    # of Kafka, in the form of properties. replication: how many replicas Kafka clients requested, NULL for no number.
    """CREATE TABLE topics (
        namespace INTEGER NOT NULL,
        domain INTEGER NOT NULL,
        base TEXT NOT NULL,
        listed TEXT NOT NULL,
        topic_id BLOB NOT NULL,
        properties TEXT,
        created INTEGER NOT NULL,
        configs TEXT,
        replication INTEGER,
        PRIMARY KEY (namespace, domain, base)
    ) WITHOUT ROWID""",
    """CREATE TABLE changes (
        id INTEGER PRIMARY KEY,
        namespace INTEGER NOT NULL,
        version INTEGER NOT NULL,
        operation TEXT NOT NULL,
        domain INTEGER NOT NULL,
        base TEXT NOT NULL,
        topic_id BLOB NOT NULL,
        listed_before TEXT NOT NULL,
        listed_after TEXT NOT NULL,
        properties_before TEXT,
        properties_after TEXT,
        time INTEGER NOT NULL,
        configs_before TEXT,
        configs_after TEXT
    )""",
    "CREATE INDEX changes_by_version ON changes (namespace, version)",
    STAMPS,
    BY_TOPIC_ID,
    *KAFKA_TABLES.values(),
)


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """A number that SQLite stores about the file."""
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether this is an empty database without an application id."""
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not objects and not pragma(connection, "application_id") and not pragma(connection, "user_version")


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables; if two processes do so at once, one finds them made."""
    _keep_a_write_ahead_log(connection)
    connection.execute("BEGIN EXCLUSIVE")
    if is_blank(connection):
        for statement in _SCHEMA:
            connection.execute(statement)
        catalog_id = topic_id_text(new_topic_id())
        connection.execute("INSERT INTO meta VALUES (?, ?)", (catalog_id, time.time_ns() // 1_000_000))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _keep_a_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Turn on the file's write-ahead log, within the connection's busy timeout.

    If several processes do so at once, SQLite refuses all but one without its busy handler, since the change turns a
    reader into a writer.
    """
    until = time.monotonic() + pragma(connection, "busy_timeout") / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
        time.sleep(_BUSY_PAUSE)
