"""A namespace filled with topics, and its expected names."""

from __future__ import annotations

import io
import json

from broker_core.catalog import SqliteCatalog, TopicRecord, import_topics
from broker_core.names import NamespaceName, TopicName
from tests.support.narrowed import present

__all__ = ["NAMESPACE", "all_names", "bring", "read"]

NAMESPACE = NamespaceName("a", "b")


def bring(catalog: SqliteCatalog, *lines: object, namespace: NamespaceName = NAMESPACE) -> None:
    data = "\n".join(json.dumps({"name": line} if isinstance(line, str) else line) for line in lines)
    import_topics(catalog, namespace, io.BytesIO(data.encode()))


def all_names(catalog: SqliteCatalog) -> dict[str, dict[str, str]]:
    with catalog.topics(NAMESPACE) as (_, records):
        return {name: dict(record.properties) for record in records for name in record.names}


def read(catalog: SqliteCatalog, local: str) -> TopicRecord:
    """A topic that is there."""
    return present(catalog.topic(TopicName("persistent", NAMESPACE, local)))
