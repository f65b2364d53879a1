"""The SQL of a listing. Texts consist of constants; values are always parameters.

The names of a page come as one value of bytes, each name after a slash, which no local name has. PostgreSQL joins them
at the speed of memory. A message for each row (a cursor, binary COPY) costs both sides several times as much, for a
thousand rows and for a million; COPY takes no parameters either. A page has at most :data:`PAGE_NAMES` names, so that
one value stays far below PostgreSQL's limit of 1 GB. A page that is larger than its reader has memory for is withheld:
only its size comes.

The first page comes with the version of the namespace, by one statement and so from one state. Later pages follow the
last name in the order of an index. Rows that are found by properties or substrings have no such order: one statement
gives all of their pages.
"""

# ruff: noqa: S608 - the texts are constants of this module; `bind` is the only way in for a value

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from broker_core_postgres.listing.row_conditions import Bounds, RowConditions
from broker_core_postgres.schema import IndexParts

__all__ = [
    "PAGE_NAMES",
    "RowSource",
    "Statement",
    "first_page_statement",
    "next_page_statement",
    "search_statement",
    "version_statement",
]

#: Most names of a page: 32,000 names of 32 KiB fit into 1 GB. 1.5 MB of usual names take about 10 ms.
PAGE_NAMES: Final = 32_000
#: Sorts after every name (32,767 bytes at most); the upper bound of open ranges.
_AFTER_ALL_NAMES: Final = "\U0010ffff" * 8192


@dataclass(frozen=True, slots=True)
class RowSource:
    """The source of rows. ``relation`` is SQL, already quoted.

    ``topic_id`` is SQL of the id of the topic of a row ``t``. ``versions`` is false for the operator's own relation,
    which has none. ``own_index``: the schema's indexes exist, one of properties with their namespace, and the ones of
    substrings in ``parts``.
    """

    relation: str = "broker_core.topics"
    topic_id: str = "t.topic_id"
    versions: bool = True
    own_index: bool = True
    parts: IndexParts = ((0, 0),)


@dataclass(slots=True)
class Statement:
    """A text and its parameters."""

    text: str = ""
    arguments: list[Any] = field(default_factory=list)

    def bind(self, value: Any, type_: str = "text", *, collation: str = "C") -> str:
        """Add a parameter. Returns its SQL."""
        self.arguments.append(value)
        place = f"${len(self.arguments)}::{type_}"
        return f'{place} COLLATE "{collation}"' if type_ == "text" else place


def version_statement(namespace: str) -> Statement:
    """The version of a namespace and the catalogue's id, by one index look-up; no row if it was never loaded."""
    statement = Statement()
    statement.text = _select_version(statement.bind(namespace))
    return statement


def first_page_statement(
    row_conditions: RowConditions, source: RowSource, most_bytes: int, *, most_names: int | None = None
) -> Statement:
    """Columns ``version``, ``catalog_id``, ``names``, ``size``, ``persistent``, ``other``; no row without a version.

    If ``names`` is ``most_names`` (by default a full page), more may follow. Both columns of names are null if
    ``size``, in bytes, is above ``most_bytes``. Rows of a whole namespace are ordered by domain and name.
    """
    statement = Statement()
    namespace = statement.bind(row_conditions.namespace)
    rows = _select_rows(statement, row_conditions, source, namespace)
    if row_conditions.kind == "namespace":
        rows += ' ORDER BY t.domain COLLATE "C", t.local_name COLLATE "C"'
    rows += f" LIMIT {statement.bind(PAGE_NAMES if most_names is None else most_names, 'bigint')}"
    page = f"SELECT {_page_columns(row_conditions, statement.bind(most_bytes, 'bigint'))} FROM ({rows}) t"
    if source.versions:
        statement.text = (
            f"SELECT v.*, p.* FROM ({_select_version(namespace)}) v CROSS JOIN LATERAL ({page}) p"
        )
    else:
        # A relation without versions knows a namespace if it has any row of it.
        known = f"EXISTS (SELECT FROM {source.relation} k WHERE k.namespace = {namespace})"
        statement.text = (
            f"SELECT NULL::bigint AS version, NULL::uuid AS catalog_id, p.* FROM ({page}) p "
            f"WHERE p.names > 0 OR {known}"
        )
    return statement


def next_page_statement(
    row_conditions: RowConditions,
    source: RowSource,
    bounds: Bounds | None,
    after: tuple[str, str, str] | None,
    most_bytes: int,
) -> Statement:
    """The page of a namespace, or of one range, that follows the row ``after`` (matched, domain, local name)."""
    statement = Statement()
    namespace = statement.bind(row_conditions.namespace)
    conditions = [f"t.namespace = {namespace}", *_domain_conditions(statement, row_conditions)]
    last: tuple[str, ...] = after or ()
    if bounds is None and len(row_conditions.domains) == 1:
        # Not by a row of both columns: PostgreSQL would begin at the domain's first name and skip up to the row, and
        # each page would cost as much as all before it.
        order = ["t.local_name"]
        last = last[2:]
    elif bounds is None:
        order = ["t.domain", "t.local_name"]
        last = last[1:]
    else:
        order = ["t.matched", "t.domain", "t.local_name"]
        conditions.append(_range_condition(statement, bounds if after is None else (after[0], bounds[1])))
    if last:
        row = ", ".join(statement.bind(value) for value in last)
        conditions.append(f"({', '.join(order)}) > ({row})")
    by = ", ".join(f'{column} COLLATE "C"' for column in order)
    rows = (
        f"SELECT t.domain, t.local_name FROM {source.relation} t WHERE {' AND '.join(conditions)} "
        f"ORDER BY {by} LIMIT {statement.bind(PAGE_NAMES, 'bigint')}"
    )
    statement.text = (
        f"SELECT {_page_columns(row_conditions, statement.bind(most_bytes, 'bigint'))} FROM ({rows}) t"
    )
    return statement


def search_statement(row_conditions: RowConditions, source: RowSource, page_bytes: int) -> Statement:
    """All pages of rows without an order, for a cursor: each of ``page_bytes`` at most, plus one name."""
    statement = Statement()
    columns = (
        "t.domain, t.local_name, sum(octet_length(t.local_name) + 1) OVER (ROWS UNBOUNDED PRECEDING)"
        f" / {statement.bind(page_bytes, 'bigint')} AS page"
    )
    rows = _select_rows(statement, row_conditions, source, None, columns)
    statement.text = f"SELECT {_page_columns(row_conditions, None)} FROM ({rows}) t GROUP BY t.page"
    return statement


def _select_version(namespace: str) -> str:
    return (
        "SELECT n.version, (SELECT c.id FROM broker_core.catalog c WHERE c.singleton) AS catalog_id "
        f"FROM broker_core.namespaces n WHERE n.namespace = {namespace}"
    )


def _select_rows(
    statement: Statement,
    row_conditions: RowConditions,
    source: RowSource,
    namespace: str | None,
    columns: str = "t.domain, t.local_name",
) -> str:
    conditions = (
        _search_conditions(statement, row_conditions, source) if row_conditions.kind == "search" else []
    )
    # The conditions of a search without bounds name the namespace already, in a form for their own index.
    alone = bool(conditions) and not row_conditions.bounds
    if not alone:
        conditions.append(f"t.namespace = {namespace or statement.bind(row_conditions.namespace)}")
    conditions += _domain_conditions(statement, row_conditions, collation="POSIX" if alone else "C")
    if len(row_conditions.bounds) > 1 and row_conditions.kind == "range":
        # One index look-up for each range. An OR of the ranges would read the table too. OFFSET keeps the planner from
        # reading the namespace once and comparing each row with all ranges.
        lows = statement.bind([low for low, _ in row_conditions.bounds], "text[]")
        highs = statement.bind(
            [_AFTER_ALL_NAMES if high is None else high for _, high in row_conditions.bounds], "text[]"
        )
        conditions += ["t.matched >= r.low", "t.matched < r.high"]
        where = " AND ".join(conditions)
        return (
            f"SELECT {columns} FROM unnest({lows}, {highs}) r(low, high) CROSS JOIN LATERAL "
            f"(SELECT t.domain, t.local_name FROM {source.relation} t WHERE {where} OFFSET 0) t"
        )
    if row_conditions.bounds:
        conditions.append(
            f"({' OR '.join(_range_condition(statement, bounds) for bounds in row_conditions.bounds)})"
        )
    return f"SELECT {columns} FROM {source.relation} t WHERE {' AND '.join(conditions)}"


def _search_conditions(statement: Statement, row_conditions: RowConditions, source: RowSource) -> list[str]:
    """Conditions for properties and substrings, within their namespace.

    Without statistics, right after a load, the planner expects few rows in a namespace and reads all of them; for a
    page of many rows it prefers an ordered index. So the conditions have a form that no other index can serve: the
    index of trigrams has the collation "POSIX", another name of the same order.
    """
    if not source.own_index:
        pairs = json.dumps(dict(row_conditions.properties), ensure_ascii=False)
        return [
            f"t.namespace = {statement.bind(row_conditions.namespace)}",
            *([f"t.properties @> {statement.bind(pairs, 'jsonb')}"] if row_conditions.properties else []),
            *(f"t.matched LIKE {statement.bind(like)}" for like in row_conditions.like_patterns),
        ]
    conditions = []
    if row_conditions.properties:
        wanted = json.dumps({row_conditions.namespace: dict(row_conditions.properties)}, ensure_ascii=False)
        conditions += [
            "t.properties <> '{}'",  # the index has no empty ones
            f"broker_core.properties_in(t.namespace, t.properties) @> {statement.bind(wanted, 'jsonb')}",
        ]
    if row_conditions.like_patterns:
        conditions.append(f"t.namespace = {statement.bind(row_conditions.namespace, collation='POSIX')}")
        # A pattern without a leading % would become a range of another index.
        anywhere = (like if like.startswith("%") else f"%{like}" for like in row_conditions.like_patterns)
        conditions += [f"t.matched LIKE {statement.bind(like, collation='POSIX')}" for like in anywhere]
        # Constants, not parameters, so that the planner knows which index has which rows.
        parts = " OR ".join(f"t.trigram_part BETWEEN {low:d} AND {high:d}" for low, high in source.parts)
        conditions.append(f"({parts})")
    return conditions


def _domain_conditions(
    statement: Statement, row_conditions: RowConditions, *, collation: str = "C"
) -> list[str]:
    if len(row_conditions.domains) != 1:
        return []
    return [f"t.domain = {statement.bind(row_conditions.domains[0], collation=collation)}"]


def _range_condition(statement: Statement, bounds: Bounds) -> str:
    low, high = bounds
    above = f"t.matched >= {statement.bind(low)}"
    return above if high is None else f"{above} AND t.matched < {statement.bind(high)}"


def _page_columns(row_conditions: RowConditions, most_bytes: str | None) -> str:
    """The columns of one page."""
    glued = {"persistent": "NULL::text", "non-persistent": "NULL::text"}
    for domain in row_conditions.domains:
        only = f" FILTER (WHERE t.domain = '{domain}')" if len(row_conditions.domains) > 1 else ""
        glued[domain] = f"string_agg(t.local_name, '/'){only}"
    size = " + ".join(f"coalesce(octet_length({glued[domain]}), 0)" for domain in row_conditions.domains)
    values = [f"convert_to('/' || {glued[domain]}, 'UTF8')" for domain in ("persistent", "non-persistent")]
    if most_bytes is not None:
        values = [f"CASE WHEN {size} <= {most_bytes} THEN {value} END" for value in values]
    return f"count(*) AS names, {size} AS size, {values[0]} AS persistent, {values[1]} AS other"
