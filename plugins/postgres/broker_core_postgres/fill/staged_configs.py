"""Kafka's configs and numbers of replicas that a source gives: a temporary table with a row for each such topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from broker_core_postgres.fill.copy_text import escape_names
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.temporary_table import NAME, StagedTable

__all__ = ["copy_configs", "staged_configs"]

_COLUMNS: Final = {
    "namespace": f"{NAME} NOT NULL",
    "domain": f"{NAME} NOT NULL",
    "topic": f"{NAME} NOT NULL",
    "configs": "jsonb",
    "replication": "smallint",
    "part": "integer NOT NULL",
}

# A topic that several parts of a file name: the last configs, and the last number.
_ONCE: Final = """WITH every AS (DELETE FROM pg_temp.broker_core_staged_configs RETURNING *)
    INSERT INTO pg_temp.broker_core_staged_configs
    SELECT namespace, domain, topic, (array_agg(configs ORDER BY part DESC) FILTER (WHERE configs IS NOT NULL))[1],
        (array_agg(replication ORDER BY part DESC) FILTER (WHERE replication IS NOT NULL))[1], 0
    FROM every GROUP BY namespace, domain, topic"""
_NULL: Final = r"\N"


def staged_configs(connection: Any) -> StagedTable:
    """The table, of rows of :func:`copy_configs`. It has none if the source has no configs and replicas.

    Of several rows about a topic the last configs are kept, and the last number.
    """
    return StagedTable(connection, "broker_core_staged_configs", _COLUMNS, _ONCE)


def copy_configs(
    namespace: str, domain: str, given: Mapping[str, tuple[str | None, int | None]], *, part: int = 0
) -> bytes:
    """Rows in COPY's text format, UTF-8: by each local name of a topic its configs as JSON, and its replicas.

    ``None``: the source does not say. Raises :exc:`FillingFailed` for a text that PostgreSQL cannot hold.
    """
    head, tail = f"{namespace}\t{domain}\t", f"\t{part}\n"
    names = escape_names(list(given))
    return "".join(
        [
            f"{head}{name}\t{_text(name, configs)}\t{_NULL if replication is None else replication}{tail}"
            for name, (configs, replication) in zip(names, given.values(), strict=True)
        ]
    ).encode()


def _text(name: str, configs: str | None) -> str:
    if configs is None:
        return _NULL
    if "\\u0000" in configs and any("\0" in word for pair in json.loads(configs).items() for word in pair):
        raise FillingFailed(f"A config of {name!r} has a NUL character, which PostgreSQL cannot hold")
    # JSON escapes tabs and line feeds itself.
    return configs.replace("\\", "\\\\")
