"""Topics of the catalogue, found by name, as rows for the output of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker_core.catalog import SqliteCatalog, TopicRecord
    from broker_core.names import TopicName

__all__ = ["described", "named_topic"]


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
