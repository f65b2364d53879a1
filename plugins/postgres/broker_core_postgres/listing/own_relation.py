"""A table or view of the operator's own, read instead of ``broker_core.topics``, and the contract of its columns.

It has one row for each listed name. Further columns are allowed besides:

- ``namespace``, ``domain`` (``persistent`` or ``non-persistent``) and ``local_name``: texts, never null.
- ``matched``: ``local_name`` without its partition suffix; ``broker_core.matched_of(local_name)`` computes it.
- ``properties``: jsonb, an object of strings. Optional unless ``property_keys`` is set.
- ``topic_id``: uuid, equal for all names of a topic. Optional; without it, and if it is null, the id is made of the
  topic's name. So it is equal at every server and after every start, and nothing has to be stored.

Texts are ``text`` or ``varchar`` with the collation ``"C"``, which the use of an index needs. There is no version:
nothing is remembered between listings, and each listing reads its rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from broker_core.errors import BrokerCoreError
from broker_core_postgres.connect import quote_identifier

__all__ = ["ID_OF_RELATION", "REQUIRED_COLUMNS", "OwnRelation", "RelationRefused", "check_relation"]

#: The required columns.
REQUIRED_COLUMNS: Final = ("namespace", "domain", "local_name", "matched")

#: SQL of the id of the topic of a row ``t``: by JSON, which gives no error if there is no such column. An id of a name
#: is of version 8, as the schema's ``shared_topic_id`` makes it, which the database may not have.
ID_OF_RELATION: Final = """coalesce((to_jsonb(t) ->> 'topic_id')::uuid, overlay(overlay(overlay(
    left(encode(sha256(convert_to(t.domain || '://' || t.namespace || '/' || t.matched, 'UTF8')), 'hex'), 32)
    PLACING '0' FROM 1) PLACING '8' FROM 13) PLACING 'a' FROM 17)::uuid)"""

_PART: Final = r'(?:"(?:[^"\0]|"")+"|[^".\0]+)'
_NAME: Final = re.compile(rf"(?:({_PART})\.)?({_PART})")
_LONGEST: Final = 63  # bytes of an identifier; PostgreSQL truncates longer ones

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
    """The relation does not exist or breaks the contract. The text names each column and its fault."""


@dataclass(frozen=True, slots=True)
class OwnRelation:
    """A relation's name. ``schema`` is ``None`` if the search path decides."""

    schema: str | None
    name: str

    @classmethod
    def parse(cls, text: str) -> OwnRelation:
        """Parse ``name`` or ``schema.name``. A part with a dot is written as ``"..."``, as in SQL.

        Unlike SQL it keeps upper case. Raises :exc:`RelationRefused` for any other text.
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
        """The quoted name, safe in any statement."""
        return (
            quote_identifier(self.name)
            if self.schema is None
            else f"{quote_identifier(self.schema)}.{quote_identifier(self.name)}"
        )

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


async def check_relation(connection: Any, relation: OwnRelation, *, properties: bool = False) -> bool:
    """Check that a relation exists, is readable and has its columns. Returns whether it can be locked.

    Raises :exc:`RelationRefused`. With ``properties`` topics are selected by them. A reader may lock a table, and a
    view with the rights of its owner; nobody can lock a materialized view or a foreign table.
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
    topic_id = columns.get("topic_id")
    if topic_id is not None and topic_id["type"] != "uuid":
        wrong.append(f"topic_id is {topic_id['type']}, not uuid")
    if column is None and properties:
        wrong.append("properties is missing, and property_keys is set")
    if wrong:
        raise RelationRefused(f"relation: {relation} has not the columns that are needed: {'; '.join(wrong)}")
    return kind in {b"r", b"p", b"v"}


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
