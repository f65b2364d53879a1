"""A table or a view of the operator's own in place of ``broker_core.topics``, and what is asked of its columns.

One row for each listed name. The columns, by name; further ones do no harm:

- ``namespace``, ``domain`` (``persistent`` or ``non-persistent``) and ``local_name``: texts, never null.
- ``matched``: ``local_name`` without its partition suffix; ``broker_core.matched_of(local_name)`` computes it.
- ``properties``: jsonb, an object of strings. It may be missing, unless ``property_keys`` is set.

Texts are ``text`` or ``varchar``, compared by their bytes (``COLLATE "C"``): only then can an index be used. There is
no version, so that nothing is remembered between listings, and each listing reads its rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from broker_core.errors import BrokerCoreError
from broker_core_postgres.connect.sql_quoting import quote_identifier

__all__ = ["REQUIRED_COLUMNS", "OwnRelation", "RelationRefused", "check_relation"]

#: The columns that must be there.
REQUIRED_COLUMNS: Final = ("namespace", "domain", "local_name", "matched")

_PART: Final = r'(?:"(?:[^"\0]|"")+"|[^".\0]+)'
_NAME: Final = re.compile(rf"(?:({_PART})\.)?({_PART})")
_LONGEST: Final = 63  # bytes of an identifier; the server would cut a longer one

_FIND: Final = """SELECT c.oid, c.relkind FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relname = $2
        AND CASE WHEN $1::text IS NULL THEN pg_catalog.pg_table_is_visible(c.oid) ELSE n.nspname = $1 END"""
_COLUMNS: Final = """SELECT a.attname, pg_catalog.format_type(a.atttypid, NULL) AS type,
        l.collcollate IN ('C', 'POSIX') OR l.collname IN ('C', 'POSIX', 'ucs_basic', 'pg_c_utf8')
            OR (l.collname = 'default' AND (
                SELECT d.datcollate IN ('C', 'POSIX') FROM pg_catalog.pg_database d
                WHERE d.datname = pg_catalog.current_database())) AS by_bytes,
        l.collname
    FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped"""
_TEXTS: Final = frozenset({"text", "character varying"})


class RelationRefused(BrokerCoreError):
    """The relation is not there, or breaks the contract; the text names each column and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class OwnRelation:
    """A name as PostgreSQL knows it: ``schema`` is ``None`` where the search path decides."""

    schema: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> OwnRelation:
        """``name`` or ``schema.name``; a part with a dot in it is written as ``"..."``, as in SQL.

        Unlike in SQL, letters are never folded to lower case. Raises :exc:`RelationRefused` for anything else.
        """
        parts = _NAME.fullmatch(text)
        if parts is None:
            shown = repr(text if len(text) <= 100 else text[:100] + "…")
            raise RelationRefused(
                f'relation: expected name or schema.name (parts with a dot in "..."), not {shown}'
            )
        schema, name = (None if part is None else _unquoted(part) for part in parts.groups())
        assert name is not None
        for part in (schema, name):
            if part is not None and len(part.encode()) > _LONGEST:
                raise RelationRefused(
                    f"relation: a name has at most {_LONGEST} bytes, {part[:100]!r} has more"
                )
        return cls(schema, name)

    @property
    def sql(self) -> str:
        """The name quoted, as it stands in a statement: whatever it is, it is nothing but a name."""
        return (
            quote_identifier(self.name)
            if self.schema is None
            else f"{quote_identifier(self.schema)}.{quote_identifier(self.name)}"
        )

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


async def check_relation(connection: Any, relation: OwnRelation, *, properties: bool = False) -> bool:
    """Whether the relation can be locked. :exc:`RelationRefused` unless it is there, readable, and has its columns.

    ``properties`` says that topics are selected by them. Tables and views can be locked by who may read them (of a view
    its tables are, with the rights of the view's owner); materialized views and foreign tables by nobody.
    """
    found = await connection.fetchrow(_FIND, relation.schema, relation.name)
    if found is None:
        raise RelationRefused(
            f"relation: there is no table or view {relation} (letters count as they are written)"
        )
    oid, kind = found
    if kind not in {b"r", b"v", b"m", b"p", b"f"}:
        raise RelationRefused(f"relation: {relation} is no table and no view")
    if not await connection.fetchval("SELECT pg_catalog.has_table_privilege($1::oid, 'SELECT')", oid):
        raise RelationRefused(
            f"relation: the user may not read {relation}: GRANT SELECT ON {relation.sql} TO ..."
        )
    columns = {row["attname"]: row for row in await connection.fetch(_COLUMNS, oid)}
    wrong = []
    for name in REQUIRED_COLUMNS:
        column = columns.get(name)
        if column is None:
            wrong.append(f"{name} is missing")
        elif column["type"] not in _TEXTS:
            wrong.append(f"{name} is {column['type']}, not text")
        elif not column["by_bytes"]:
            wrong.append(f'{name} has the collation {column["collname"]}, not "C"')
    column = columns.get("properties")
    if column is not None and column["type"] != "jsonb":
        wrong.append(f"properties is {column['type']}, not jsonb")
    if column is None and properties:
        wrong.append("properties is missing, and property_keys is set")
    if wrong:
        raise RelationRefused(f"relation: {relation} has not the columns that are needed: {'; '.join(wrong)}")
    return kind in {b"r", b"p", b"v"}


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
