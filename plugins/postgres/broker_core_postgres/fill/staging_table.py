"""The staging table: a temporary table, filled by COPY, of the wanted rows of namespaces.

It belongs to one connection and locks nothing. Its rows are listed names. ``topic`` is null for a topic's own name,
``properties`` is null if the database's stay. ``stated`` is for files. For a topic's own name it means that a line says
that the topic has no partitions; for a partition, that a line says how many there are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from broker_core_postgres.fill.copy_text import escape_names
from broker_core_postgres.fill.staged_configs import staged_configs
from broker_core_postgres.fill.staged_ids import staged_ids
from broker_core_postgres.fill.temporary_table import NAME, StagedTable

__all__ = ["STAGED", "StagingTables", "copy_rows"]

#: The table's name, with the schema of temporary tables.
STAGED: Final = "pg_temp.broker_core_staged"

_NULL: Final = r"\N"
_COLUMNS: Final = {
    "namespace": f"{NAME} NOT NULL",
    "domain": f"{NAME} NOT NULL",
    "topic": NAME,
    "local_name": f"{NAME} NOT NULL",
    "properties": "jsonb",
    "part": "integer NOT NULL",
    "stated": "boolean NOT NULL",
}

# Of topics that several parts of a file name, and separately of their partitions: each name once, with the properties
# of the last part that gives some.
_ONCE: Final = """CREATE TEMPORARY TABLE broker_core_once ON COMMIT DROP AS
    SELECT DISTINCT ON (s.namespace, s.domain, s.local_name)
        s.namespace, s.domain, s.topic, s.local_name, given.properties, 0 AS part, every.stated
    FROM pg_temp.broker_core_staged s
    JOIN (
        SELECT namespace, domain, coalesce(topic, local_name) AS topic, topic IS NULL AS own, bool_or(stated) AS stated
        FROM pg_temp.broker_core_staged GROUP BY 1, 2, 3, 4
    ) every ON every.namespace = s.namespace AND every.domain = s.domain
        AND every.topic = coalesce(s.topic, s.local_name) AND every.own = (s.topic IS NULL)
    LEFT JOIN (
        SELECT DISTINCT ON (namespace, domain, coalesce(topic, local_name), topic IS NULL)
            namespace, domain, coalesce(topic, local_name) AS topic, topic IS NULL AS own, properties
        FROM pg_temp.broker_core_staged
        WHERE properties IS NOT NULL
        ORDER BY namespace, domain, coalesce(topic, local_name), topic IS NULL, part DESC
    ) given ON given.namespace = s.namespace AND given.domain = s.domain
        AND given.topic = coalesce(s.topic, s.local_name) AND given.own = (s.topic IS NULL);
    TRUNCATE pg_temp.broker_core_staged;
    INSERT INTO pg_temp.broker_core_staged SELECT * FROM pg_temp.broker_core_once"""


class StagingTables:
    """The staging table of a connection, of rows of :func:`copy_rows`, and the tables of its ids and configs."""

    def __init__(self, connection: Any) -> None:
        self.names = StagedTable(connection, "broker_core_staged", _COLUMNS, _ONCE)
        self.ids = staged_ids(connection)
        self.configs = staged_configs(connection)

    async def each(self, work: Callable[[StagedTable], Awaitable[None]]) -> None:
        """Call ``work``, such as :meth:`.StagedTable.analyze`, with each table."""
        for table in (self.names, self.ids, self.configs):
            await work(table)


def copy_rows(
    namespace: str,
    domain: str,
    names: Sequence[str],
    topics: Sequence[str] | None = None,
    properties: Sequence[str | None] | None = None,
    *,
    part: int = 0,
    stated: bool = True,
) -> bytes:
    """Rows in COPY's text format, UTF-8. Without ``topics`` each name is a topic's own."""
    if not names:
        return b""
    head, tail = f"{namespace}\t{domain}\t", f"\t{part}\t{stated:d}\n"
    names = escape_names(names)
    if topics is None and properties is None:
        between = f"\t\\N{tail}{head}\\N\t"
        return f"{head}\\N\t{between.join(names)}\t\\N{tail}".encode()
    owners = names if topics is None else escape_names(topics)
    texts = [_NULL] * len(names) if properties is None else [_text(text) for text in properties]
    return "".join(
        [
            f"{head}{_NULL if owner == name else owner}\t{name}\t{text}{tail}"
            for owner, name, text in zip(owners, names, texts, strict=True)
        ]
    ).encode()


def _text(properties: str | None) -> str:
    # JSON escapes tabs and line feeds itself.
    return _NULL if properties is None else properties.replace("\\", "\\\\")
