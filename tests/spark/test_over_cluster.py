"""A generation of a cluster's namespace, before which the server is a gateway: it follows what the snapshot sees."""

from __future__ import annotations

import asyncio
import re
from random import Random
from typing import Any

import pytest

from broker_core.broker.pulsar_gateway import Gateway
from broker_core.change_log import CatalogVersion
from broker_core.client import ServerRefused
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode, NamespaceName
from broker_core.testing import Server, serve
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import begin_build
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.generation_builder import build_generation
from tests.support.narrowed import of_type, present

NAMESPACE = "public/default"
PATTERNS = (None, f"{NAMESPACE}/t-1.*", f"{NAMESPACE}/t-.*[02468]")


def expected(names: list[str], pattern: str | None) -> list[str]:
    kept = re.compile(".*" if pattern is None else f"persistent://{pattern}")
    return sorted(filter(kept.fullmatch, names))


async def test_changes_of_the_cluster_are_put_over_the_generation() -> None:
    random, spark, uri = Random(28), SparkPlugin(), "memory://over-cluster"
    tables: dict[str, Any] = {
        "plugins": {"enabled": ["spark"], "spark": {"store": uri, "refresh": "1h", "source_timeout": "30s"}}
    }
    async with FakeCluster(topic_watchers=True, reconcile=True) as cluster:
        names = cluster.topics[NAMESPACE]
        names += [f"persistent://{NAMESPACE}/t-{number}" for number in range(60)]
        tables["upstream"] = {"service_url": cluster.url}
        async with serve({"spark": spark}, settings=tables) as server:
            log = present(server.broker.pipeline.own_log)
            version = await log.version(NamespaceName.parse(NAMESPACE))
            await asyncio.to_thread(_publish, uri, version, list(names))
            await spark.lister.refresher.refresh()
            await _check(server, names)
            gateway = of_type(server.broker.pipeline.lister, Gateway)
            snapshots = present(gateway.cluster.snapshots)
            await eventually(lambda: snapshots.watches.open == 1)
            asked = len(cluster.asked)

            async def is_followed() -> bool:
                await _check(server, names)
                return True

            for number in range(30):
                if random.random() < 0.5:
                    cluster.change(NAMESPACE, deleted=[random.choice(names)])
                else:
                    cluster.change(NAMESPACE, new=[f"persistent://{NAMESPACE}/t-{100 + number}"])
                if number == 20:
                    cluster.lose_watchers()  # and what came meanwhile is in a listing
                served = spark.lister.counts.answers["served"]
                await eventually(is_followed)
                assert spark.lister.counts.answers["served"] >= served + len(PATTERNS)
            assert present(spark.lister.refresher.served).overlay_names() > 10
            assert len(cluster.asked) <= asked + 3, "the cluster was listed for answers of the generation"
            # A cluster that is gone is an error once the snapshot is too old, and no answer of the generation alone.
            cluster.denied = {""}
            cluster.lose_watchers()
            clock = snapshots.snapshots.clock
            snapshots.snapshots.clock = lambda: clock() + 61
            with pytest.raises(ServerRefused):
                await server.list(NAMESPACE)
            cluster.denied = set()
            snapshots.snapshots.clock = lambda: clock() + 63
            await eventually(is_followed)


async def _check(server: Server, names: list[str]) -> None:
    for pattern in PATTERNS:
        answer = await server.list(NAMESPACE, pattern=pattern)
        assert (answer.topics, answer.topics_hash) == (
            expected(names, pattern),
            topics_hash(expected(names, pattern)),
        ), pattern


def _publish(uri: str, version: CatalogVersion, names: list[str]) -> None:
    store = open_store(uri)
    with begin_build(store) as build:
        manifest = build_generation(
            store,
            {NAMESPACE: {"persistent": [name.rpartition("/")[2] for name in names]}},
            [CanonicalQuestion.of(NAMESPACE, Mode.PERSISTENT, pattern, {}) for pattern in PATTERNS],
            catalogue_id=version.catalog_id,
            versions={NAMESPACE: version.number},
        )
        build.publish(manifest)
