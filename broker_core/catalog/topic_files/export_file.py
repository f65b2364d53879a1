"""Export of a namespace's topics as a file, from which an import makes the same set, system topics included."""

from __future__ import annotations

import sqlite3
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Literal

from broker_core.catalog.catalog_errors import ExportRefused
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.likely_mistakes import WHITE_SPACE, begins_another_file, begins_object
from broker_core.compact_json import compact_json
from broker_core.names import DOMAINS, MAX_PARTITIONS, ListedNames, NamespaceName, partition_name

__all__ = ["ExportFormat", "export_topics", "has_odd_names"]

#: ``names``: one name a line, local if it is persistent; ``json``: JSON lines, with partitions, properties, ids,
#: configs and replicas.
ExportFormat = Literal["names", "json"]

_LINES_A_WRITE: Final = 10_000
_TOPICS = (
    "SELECT domain, base, listed, properties, topic_id, configs, replication FROM topics"
    " WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) ORDER BY domain, base"
)

_ODD = (
    "SELECT 1 FROM topics WHERE namespace = (SELECT id FROM namespaces WHERE name = :namespace)"
    " AND (instr(base, char(10)) OR instr(base, char(9)) OR base <> trim(base, :white)) LIMIT 1"
)


def export_topics(
    catalog: SqliteCatalog,
    namespace: NamespaceName,
    target: BinaryIO,
    form: ExportFormat = "names",
    *,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write all topics of a namespace in one state of the file; returns the number of lines.

    ``names`` has every listed name and nothing else; ``json`` has all details of the topics, with their ids.
    ``progress`` is called with the lines so far.
    A name that the plain format cannot carry raises :exc:`~broker_core.catalog.ExportRefused`, since an import
    of the file would not give the same set, or would refuse it: :func:`has_odd_names` says whether there is one. Memory
    does not grow with the namespace.
    """
    written = 0
    with catalog.reading() as connection:
        lines = _json_lines(connection, namespace) if form == "json" else _name_lines(connection, namespace)
        part: list[str] = []
        for line in lines:
            part.append(line)
            if len(part) == _LINES_A_WRITE:
                written += _write(target, part)
                if progress is not None:
                    progress(written)
        written += _write(target, part)
        if progress is not None:
            progress(written)
    return written


def has_odd_names(catalog: SqliteCatalog, namespace: NamespaceName) -> bool:
    """Whether a name of the namespace has a line feed, a tab, or white space at an end: JSON lines alone carry it."""
    with catalog.reading() as connection:
        found = connection.execute(_ODD, {"namespace": str(namespace), "white": WHITE_SPACE}).fetchone()
    return found is not None


def _write(target: BinaryIO, lines: list[str]) -> int:
    count = len(lines)
    target.write("".join(lines).encode())
    lines.clear()
    return count


def _name_lines(connection: sqlite3.Connection, namespace: NamespaceName) -> Iterator[str]:
    prefixes = ("", f"{DOMAINS[1]}://{namespace}/")
    first = True
    for domain, base, listed, *_ in connection.execute(_TOPICS, (str(namespace),)):
        if "\n" in base:
            raise ExportRefused(f"Topic {base!r} has a line feed in its name: export as JSON lines")
        if "\t" in base or base != base.strip(WHITE_SPACE):
            raise ExportRefused(
                f"Topic {base!r} has a tab, or white space at an end, in its name: export as JSON lines"
            )
        names = (base,) if listed == "*" else ListedNames.parse(listed).names(base)
        full = begins_object(base)
        for name in names:
            prefix = prefixes[domain]
            if full or (first and begins_another_file(name)):  # write this one as a full name
                prefix = f"{DOMAINS[domain]}://{namespace}/"
            first = False
            yield f"{prefix}{name}\n"


def _json_lines(connection: sqlite3.Connection, namespace: NamespaceName) -> Iterator[str]:
    prefixes = ("", f"{DOMAINS[1]}://{namespace}/")
    rows = connection.execute(_TOPICS, (str(namespace),))
    for domain, base, listed, properties, topic_id, configs, replication in rows:
        name = prefixes[domain] + base
        members = f',"topic_id":"{urlsafe_b64encode(topic_id)[:22].decode()}"'
        if properties is not None and properties != "{}":
            members += f',"properties":{properties}'
        if configs is not None and configs != "{}":
            members += f',"configs":{configs}'
        if replication is not None:
            members += f',"replication":{replication}'
        of = ListedNames.parse(listed)
        if of.plain:  # beside partitions the line has to say that it is not about them
            apart = ',"partitions":0' if of.ranges else ""
            yield f'{{"name":{compact_json(name)}{apart}{members}}}\n'
        for first, last in of.ranges:
            declared = min(last + 1, MAX_PARTITIONS) if first == 0 else 0
            if declared:
                yield f'{{"name":{compact_json(name)},"partitions":{declared}{members}}}\n'
            for index in range(max(first, declared), last + 1):
                yield f'{{"name":{compact_json(partition_name(name, index))}{members}}}\n'
