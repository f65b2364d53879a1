"""Topics in the file of an embedded catalogue, created as another process does it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from broker_core.catalog import SqliteCatalog
from broker_core.names import TopicName

__all__ = ["create_topics"]


def create_topics(
    path: Path, *names: str | TopicName, partitions: int = 0, properties: Mapping[str, str] | None = None
) -> None:
    """Create topics in a catalogue's file, which is made if it is not there."""
    with SqliteCatalog(path) as catalog:
        for name in names:
            topic = TopicName.parse(name) if isinstance(name, str) else name
            catalog.create(topic, partitions=partitions, properties=properties)
