"""The Kafka cluster behind an admin gateway: its nodes and topics, requested as the gateway does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from typing import TYPE_CHECKING

from broker_core.counted import counted
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.plugin_api import DefaultLister
    from broker_core.settings import KafkaSettings, KafkaUpstreamSettings, Settings
    from broker_core.upstream.kafka import KafkaCluster

__all__ = ["kafka_upstream_checks"]

_SERVERS = "kafka.upstream.bootstrap_servers"
_TOPICS = "kafka.upstream.topics"


def kafka_upstream_checks(settings: Settings) -> Iterator[Check]:
    """Findings: only the cluster uses the namespace, nodes answer, all can have ports, and all topics are listed."""
    kafka = settings.kafka
    if kafka is None or kafka.upstream is None:
        return
    yield asyncio.run(_namespace(settings, kafka.upstream))
    yield from asyncio.run(_cluster(kafka, kafka.upstream))


async def _cluster(kafka: KafkaSettings, upstream: KafkaUpstreamSettings) -> list[Check]:
    from broker_core.broker import cluster_options
    from broker_core.client import ClientError
    from broker_core.client.kafka import SaslAuthenticationException
    from broker_core.upstream.kafka import KafkaCluster

    cluster = KafkaCluster(cluster_options(upstream))
    try:
        found = await cluster.refresh()
        nodes = counted(len(found.nodes), "node")
        return [
            Check.ok(_SERVERS, f"the Kafka cluster {found.cluster_id} answers, of {nodes}"),
            _ports(kafka, upstream, len(found.nodes)),
            await _topics(cluster, upstream),
        ]
    except SaslAuthenticationException as failed:
        own = upstream.sasl
        user = f" the user {own.user}" if own is not None and own.user else " the gateway's credentials"
        return [Check.error("kafka.upstream.sasl", f"the Kafka cluster refuses{user}: {failed}")]
    except ClientError as failed:
        return [Check.error(_SERVERS, str(failed))]
    finally:
        await cluster.stop()


async def _topics(cluster: KafkaCluster, upstream: KafkaUpstreamSettings) -> Check:
    """Whether all topics that the gateway's own user may see can be listed."""
    from broker_core.errors import ListingFailed
    from broker_core.names import Mode, NamespaceName
    from broker_core.upstream.kafka import KafkaTopicStore

    async def admit(_: int) -> None:
        """Admit everything: the command is alone in its process."""

    namespace = NamespaceName.parse(upstream.namespace)
    store = KafkaTopicStore(cluster, namespace)
    try:
        listed = await store.list(None, namespace, Mode.PERSISTENT, None, admit)
    except ListingFailed as failed:
        return Check.warning(_TOPICS, f"cannot be listed: {failed}")
    topics = store.topics_of(None, listed.topics_hash)
    assert topics is not None
    left_out = topics.left_out_text()
    if left_out:
        return Check.warning(_TOPICS, f"left out of listings, where they would be others, are {left_out}")
    return Check.ok(_TOPICS, f"{counted(topics.table.size, 'topic')}, all of which can be listed")


async def _namespace(settings: Settings, upstream: KafkaUpstreamSettings) -> Check:
    from broker_core.broker import NamespaceTaken, check_namespace
    from broker_core.catalog import CatalogError
    from broker_core.errors import ListingFailed

    name = "kafka.upstream.namespace"
    try:
        async with AsyncExitStack() as stack:
            lister = await _other_lister(settings, stack)
            if lister is not None:
                await check_namespace(upstream, lister)
    except NamespaceTaken as taken:
        return Check.error(name, str(taken).removeprefix(f"{name}: "))
    except (ListingFailed, CatalogError) as failed:
        return Check.warning(name, f"cannot be looked into: {failed}")
    return Check.ok(name, f"{upstream.namespace} has no other topics")


async def _other_lister(settings: Settings, stack: AsyncExitStack) -> DefaultLister | None:
    """The lister for namespaces that no plugin lists; ``None`` if there is no catalogue yet."""
    if settings.upstream is not None:
        from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions

        cluster = UpstreamCluster(
            UpstreamOptions(settings.upstream, settings.pulsar), identifies=settings.authentication.is_on
        )
        stack.push_async_callback(cluster.stop)
        return cluster.lister
    if not settings.catalog.path.exists():
        return None
    from broker_core.catalog import CatalogLister, SqliteCatalog
    from broker_core.memory import Permits

    permits = Permits(settings.limits)
    stack.callback(permits.close)
    catalog = stack.enter_context(closing(SqliteCatalog(settings.catalog.path, create=False)))
    lister = CatalogLister(catalog, permits)
    stack.callback(lister.close)
    return lister


def _ports(kafka: KafkaSettings, upstream: KafkaUpstreamSettings, nodes: int) -> Check:
    listeners = 1 if kafka.tls is None else 2
    needed, room = nodes * listeners, len(upstream.ports)
    need = "needs" if nodes == 1 else "need"
    text = f"{counted(nodes, 'node')} at {counted(listeners, 'listener')} {need} {counted(needed, 'port')} of {room}"
    return (
        Check.ok("kafka.upstream.ports", text)
        if needed <= room
        else Check.error("kafka.upstream.ports", f"{text}: widen the range")
    )
