"""The contract of stores, held by each that there is: what it lists, by hash, by principal, and what is an error."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.errors import Cause, ListingFailed
from broker_core.memory.permits import Permits
from broker_core.names import Mode
from broker_core.settings import UpstreamSettings, UpstreamSnapshotsSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions
from broker_core.upstream.snapshots import TopicStore
from tests.support.fake_cluster import FakeCluster
from tests.support.memory_store import NAMES, NAMESPACE, OTHERS, MemoryStore


@asynccontextmanager
async def in_memory() -> AsyncIterator[tuple[TopicStore, set[Any]]]:
    store = MemoryStore(has_verdicts=True)
    yield store, store.denied


@asynccontextmanager
async def of_brokers() -> AsyncIterator[tuple[TopicStore, set[Any]]]:
    async with FakeCluster() as fake:
        fake.topics[str(NAMESPACE)] = [*NAMES, *OTHERS]
        settings = UpstreamSettings.model_validate(
            {
                "service_url": fake.url,
                "token": "of-the-gateway",
                "snapshots": UpstreamSnapshotsSettings.model_validate(
                    {"mode": "auto", "token": "of-the-snapshots"}
                ),
            }
        )
        cluster = UpstreamCluster(UpstreamOptions(settings), identifies=True, permits=Permits())
        await cluster.start()
        assert cluster.snapshots is not None
        try:
            yield cluster.snapshots.store, fake.denied
        finally:
            await cluster.stop()


@pytest.mark.parametrize("stores", [in_memory, of_brokers])
async def test_a_store_keeps_the_contract(stores: object) -> None:
    admitted: list[int] = []

    async def admit(size: int) -> None:
        admitted.append(size)

    assert stores in (in_memory, of_brokers)
    async with (in_memory if stores is in_memory else of_brokers)() as (store, denied):
        assert store.has_verdicts
        view = store.view_of(Asker("one"))
        assert view == store.view_of(Asker("two")), "one role lists for all"
        listed = await store.list(view, NAMESPACE, Mode.PERSISTENT, None, admit)
        assert listed.names is not None
        assert listed.names.to_pylist() == NAMES
        assert listed.size > sum(map(len, NAMES))
        assert admitted, "it is as large as it is before it is read"
        again = await store.list(view, NAMESPACE, Mode.PERSISTENT, listed.topics_hash, admit)
        assert (again.names, again.topics_hash) == (None, listed.topics_hash)
        others = await store.list(view, NAMESPACE, Mode.NON_PERSISTENT, listed.topics_hash, admit)
        assert others.names is not None
        assert others.names.to_pylist() == OTHERS
        await store.allow(Asker("one"), NAMESPACE)
        denied.add("two")
        with pytest.raises(ListingFailed) as failed:
            await store.allow(Asker("two"), NAMESPACE)
        assert failed.value.cause is Cause.DENIED
