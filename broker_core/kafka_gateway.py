"""The Kafka cluster behind an admin gateway, opened as the settings say: its nodes, and its topics as a plugin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from broker_core.access.sessions import Sessions
from broker_core.client import CredentialsFailed
from broker_core.client.kafka import OAuthBearer, Plain, Sasl, Scram
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.names import NamespaceName
from broker_core.servers.kafka import ClusterFront, NodePorts
from broker_core.service import ClusterEdits, Find
from broker_core.service_addresses import service_addresses
from broker_core.settings import KafkaUpstreamSettings, KeySource
from broker_core.shrink_guard import ShrinkGuard
from broker_core.upstream.brokers_tls import brokers_tls
from broker_core.upstream.kafka import ClusterOptions, ClusterPlugin, KafkaCluster

__all__ = ["KafkaGateway", "cluster_options"]

_DEFAULT_PORT: Final = 9092


class KafkaGateway:
    """``sessions`` are the credentials of all clients, of which the cluster gets those of its own if it is set so."""

    def __init__(
        self,
        upstream: KafkaUpstreamSettings,
        metrics: Metrics,
        permits: Permits,
        guard: ShrinkGuard,
        sessions: Sessions,
    ) -> None:
        self.upstream: Final = upstream
        self.sessions: Final = sessions if upstream.forward == "client" else None
        self.cluster: Final = KafkaCluster(cluster_options(upstream))
        #: The last plugin of the chain.
        self.plugin: Final = ClusterPlugin(
            self.cluster,
            NamespaceName.parse(upstream.namespace),
            permits,
            guard,
            max_age=upstream.max_age,
            sessions=self.sessions,
        )
        self.plugin.show(metrics, self.cluster)
        ports = NodePorts(upstream.ports.first, upstream.ports.last)
        #: The cluster as Kafka clients see it.
        self.front: Final = ClusterFront(
            self.cluster,
            self.plugin.namespace,
            ports,
            self.sessions,
            max_age=upstream.max_age,
            topics=self.plugin.current,
        )
        permits.on_pressure(lambda _: self.front.answers.clear())

    def edits(self, find: Find) -> ClusterEdits:
        """What does edits of the topics of the cluster."""
        return ClusterEdits(self.plugin, find)

    async def start(self) -> None:
        """Look for the nodes. A cluster that does not answer is looked for again later."""
        await self.cluster.start()

    async def stop(self) -> None:
        """Let go of what is held, and close all connections."""
        self.front.answers.clear()
        await self.plugin.close()
        await self.cluster.stop()

    @property
    def problem(self) -> str | None:
        """Why clients had better ask another server, where the settings want to know."""
        return self.cluster.problem if self.upstream.ready else None

    def fit(self) -> None:
        """Let listings go that there is no room for any more."""
        self.plugin.snapshots.fit()


def cluster_options(upstream: KafkaUpstreamSettings) -> ClusterOptions:
    """How the cluster is asked."""
    return ClusterOptions(
        tuple(
            address
            for server in upstream.bootstrap_servers
            for address in service_addresses(f"kafka://{server}", {"kafka": _DEFAULT_PORT})
        ),
        brokers_tls(upstream.tls),
        _own_credentials(upstream),
    )


def _own_credentials(upstream: KafkaUpstreamSettings) -> Sasl | None:
    own = upstream.sasl
    if own is None:
        return None
    if own.mechanism == "OAUTHBEARER":
        assert own.token is not None
        return OAuthBearer(_secret(own.token, "kafka.upstream.sasl.token"))
    assert own.password is not None
    password = _secret(own.password, "kafka.upstream.sasl.password")
    if own.mechanism == "PLAIN":
        return Plain(own.user, password)
    return Scram(own.user, password, mechanism=own.mechanism)


def _secret(source: KeySource, setting: str) -> Callable[[], Awaitable[str]]:
    """What reads a secret for each connection."""

    async def read() -> str:
        try:
            data = await asyncio.to_thread(source.read_secret)
            return data.decode().rstrip("\r\n")
        except OSError as error:
            raise CredentialsFailed(f"{setting}: cannot read {error.filename}: {error.strerror}") from None
        except ValueError as error:  # bytes that are no text, too
            raise CredentialsFailed(f"{setting}: {error}") from None

    return read
