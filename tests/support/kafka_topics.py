"""The topics that a Kafka client may see, of a catalogue and plugins but without a server, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from broker_core.access.asker import Asker
from broker_core.catalog import AsyncCatalog, CatalogLister, SqliteCatalog, TopicRecord
from broker_core.kafka.acls.bindings import Operation
from broker_core.kafka.acls.compiled_masks import NamedChunk
from broker_core.listing.topic_table import TopicRow
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Leases, Permits
from broker_core.names import NamespaceName, TopicName
from broker_core.pipeline import Pipeline
from broker_core.servers.kafka.callers.authorizer import Authorizer, Caller
from broker_core.servers.kafka.topics.listed_topics import ListedTopics
from broker_core.servers.kafka.topics.named_topics import NamedTopics
from broker_core.service import Find, VisibleTopics
from broker_core.settings import (
    AuthenticationSettings,
    AuthorizationRule,
    AuthorizationSettings,
    LimitsSettings,
)
from tests.support.kafka_acls import AllowAll
from tests.support.pipelines import made

__all__ = [
    "NAMESPACE",
    "KafkaTopics",
    "OnlyA",
    "caller",
    "changing",
    "create",
    "kafka_topics",
    "names",
    "rows",
]

NAMESPACE = NamespaceName("public", "default")
#: Whose answers are over at the end.
_CALLERS: list[Caller] = []


@dataclass
class KafkaTopics:
    topics: ListedTopics
    named: NamedTopics
    pipeline: Pipeline
    lister: CatalogLister
    #: Of the lister.
    snapshots: PermitBudget
    lister_leases: Leases


@asynccontextmanager
async def kafka_topics(
    catalog: SqliteCatalog,
    plugins: Mapping[str, object] | None = None,
    authorizer: Authorizer | None = None,
    *,
    limits: LimitsSettings | None = None,
) -> AsyncIterator[KafkaTopics]:
    permits = Permits(limits)
    lister = CatalogLister(catalog, permits)
    async with made(lister, plugins, limits=limits) as m:
        topics = ListedTopics(m.pipeline, authorizer or AllowAll(), lister.topic_tables())
        of_file = AsyncCatalog(catalog, lister)
        named = NamedTopics(Find(m.pipeline, of_file), authorizer or AllowAll())
        yield KafkaTopics(topics, named, m.pipeline, lister, permits.snapshots, permits.leases)
        while _CALLERS:
            _CALLERS.pop().release()
        of_file.close()
    lister.close()


class OnlyA(AllowAll):
    """Topics that begin with an ``a`` may be described."""

    enabled = True

    def chunk_mask(self, _call: Caller, _operation: Operation, chunk: NamedChunk) -> np.ndarray | None:
        return np.array([name.startswith(b"a") for name in chunk.names.to_pylist()])

    def chunk_operations(self, _call: Caller, chunks: Sequence[NamedChunk]) -> list[np.ndarray | None]:
        return [np.full(len(chunk.names), 256, np.int32) for chunk in chunks]


def caller(role: str | None = None) -> Caller:
    asker = Asker(role=role, remote_address="127.0.0.1:5000", transport="kafka")
    _CALLERS.append(Caller(asker=asker, namespace=NAMESPACE, deadline=float("inf")))
    return _CALLERS[-1]


def create(catalog: SqliteCatalog, name: str, partitions: int = 0, **fields: Any) -> TopicRecord:
    return catalog.create(TopicName("persistent", NAMESPACE, name), partitions=partitions, **fields)


def changing(*, may_list: bool = False, namespace: str = str(NAMESPACE)) -> dict[str, Any]:
    """Tables of settings by which everybody may change topics, and list them or not."""
    allow = AuthorizationRule(roles=("anyone",), namespaces=(namespace,), actions=("admin", "list"))
    rule = allow if may_list else allow.model_copy(update={"actions": ("admin",)})
    return {
        "authentication": AuthenticationSettings(anonymous_role="anyone"),
        "authorization": AuthorizationSettings(mode="rules", rules=(rule,)),
    }


def names(visible: VisibleTopics) -> list[str]:
    return [row.name.decode() for row in rows(visible)]


def rows(visible: VisibleTopics) -> list[TopicRow]:
    """All topics, in the order of their names."""
    return [
        chunk.row(number)
        for chunk, mask in zip(visible.table.chunks, visible.masks, strict=True)
        for number in range(len(chunk))
        if mask is None or mask[number]
    ]
