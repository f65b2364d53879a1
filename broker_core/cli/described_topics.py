"""Topics of the catalogue in the output of commands: a row of a table, or an object of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from broker_core.catalog import SqliteCatalog, TopicRecord
    from broker_core.names import TopicName

__all__ = ["described", "named_topic", "print_rows"]


def described(record: TopicRecord) -> dict[str, Any]:
    """All facts of a topic."""
    return {**record.shown(), "names": list(record.names)}


def named_topic(catalog: SqliteCatalog, name: TopicName) -> TopicRecord:
    """The topic of a name; raises :exc:`~broker_core.catalog.TopicMissing`."""
    from broker_core.catalog import TopicMissing

    record = catalog.topic(name)
    if record is None:
        raise TopicMissing.of(name)
    return record


def print_rows(
    columns: list[str], rows: list[dict[str, Any]], form: Literal["table", "json"], *, alone: bool
) -> None:
    """Print rows as a table or as JSON; a single row that is ``alone`` becomes an object instead of a list."""
    from broker_core.cli.printed_output import print_json, print_table

    if form == "json":
        print_json(rows[0] if len(rows) == 1 and alone else rows)
    else:
        print_table(columns, ([row[column] for column in columns] for row in rows))
