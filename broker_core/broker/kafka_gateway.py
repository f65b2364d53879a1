"""The Kafka cluster behind an admin gateway, opened by the settings: its nodes, and its topics as a plugin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from broker_core.access import Asker, Sessions
from broker_core.client import ClientError, CredentialsFailed, TlsFailed, UnexpectedAnswer
from broker_core.client.kafka import KafkaException, OAuthBearer, Plain, Sasl, Scram
from broker_core.counted import counted
from broker_core.errors import BrokerCoreError, ListingFailed
from broker_core.guards import ShrinkGuard
from broker_core.memory import Permits
from broker_core.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.plugin_api import DefaultLister, ListingRequest
from broker_core.servers.kafka import ClusterFront, NodePorts
from broker_core.service import ClusterEdits, Find
from broker_core.service_addresses import service_addresses
from broker_core.settings import KafkaUpstreamSettings, KeySource, Settings
from broker_core.upstream import brokers_tls
from broker_core.upstream.kafka import ClusterOptions, ClusterPlugin, KafkaCluster

__all__ = ["ClusterUnusable", "KafkaGateway", "NamespaceTaken", "check_namespace", "cluster_options"]

_DEFAULT_PORT: Final = 9092
#: Seconds that the brokers of Pulsar have to list the namespace.
_LOOK: Final = 2.0
#: Seconds that the nodes in changed settings have to answer, before these settings are used.
_ANSWER: Final = 5.0
_log = structlog.get_logger(__name__)


class NamespaceTaken(BrokerCoreError):
    """The namespace of the cluster holds other topics, which no client would see."""

    def __init__(self, namespace: str, count: int, lister: str) -> None:
        holder = "the catalogue" if lister == "catalog" else "the Pulsar cluster of [upstream]"
        super().__init__(
            f"kafka.upstream.namespace: {namespace} holds {counted(count, 'topic')} of {holder}, which nobody would "
            "be shown: choose a namespace that is the Kafka cluster's alone"
        )


async def check_namespace(upstream: KafkaUpstreamSettings, lister: DefaultLister) -> None:
    """Raise :exc:`NamespaceTaken` if the namespace of the cluster has topics of the catalogue or of Pulsar's brokers,
    and :exc:`~broker_core.errors.ListingFailed` if that cannot be found out.
    """
    namespace = NamespaceName.parse(upstream.namespace)
    deadline = asyncio.get_running_loop().time() + _LOOK
    found = await lister.list_topics(ListingRequest(namespace, Mode.ALL, asker=Asker(), deadline=deadline))
    if len(found.topics):
        raise NamespaceTaken(upstream.namespace, len(found.topics), lister.name)


class ClusterUnusable(BrokerCoreError):
    """The nodes of other settings refuse the gateway, or are those of another cluster."""


class KafkaGateway:
    """The gateway's parts. ``sessions`` are the credentials of all clients, which the cluster gets if it is set so."""

    def __init__(
        self,
        upstream: KafkaUpstreamSettings,
        metrics: Metrics,
        permits: Permits,
        guard: ShrinkGuard,
        sessions: Sessions,
    ) -> None:
        self.upstream = upstream
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
        #: The server's front of the cluster for Kafka clients.
        self.front: Final = ClusterFront(
            self.cluster,
            self.plugin.namespace,
            ports,
            self.sessions,
            max_age=upstream.max_age,
            topics=self.plugin.current,
        )
        self.cluster.on_change.append(self.front.changed)
        metrics.gauge(
            "kafka_upstream_nodes_without_port",
            "Nodes of the Kafka cluster behind this gateway for which kafka.upstream.ports has no port.",
            lambda: float(len(ports.without())),
        )
        permits.on_pressure(lambda _: self.front.forget())

    def edits(self, find: Find) -> ClusterEdits:
        """The editor of the cluster's topics."""
        return ClusterEdits(self.plugin, find)

    async def start(self) -> None:
        """Look for the nodes. If the cluster does not answer, this is repeated later."""
        await self.cluster.start()

    async def check(self, lister: DefaultLister) -> None:
        """Raise :exc:`NamespaceTaken` as :func:`check_namespace` does; a failure of the check is logged."""
        try:
            await check_namespace(self.upstream, lister)
        except ListingFailed as failure:
            _log.warning("kafka.upstream.namespace cannot be looked into", reason=failure.message)

    async def prepare(self, settings: Settings) -> Callable[[], None] | None:
        """A function that puts other settings in force; ``None`` if they change nothing here.

        The nodes are asked for a connection: raises :exc:`ClusterUnusable` if one refuses it, or is of another
        cluster. Nodes that do not answer are no reason: they may be down.
        """
        assert settings.kafka is not None
        upstream = settings.kafka.upstream
        assert upstream is not None  # that it is there at all needs a restart
        former = self.upstream
        if upstream == former:
            return None
        options = None
        if _of_connections(upstream) != _of_connections(former):
            options = cluster_options(upstream)
            await self._check(options)

        def put_in_force() -> None:
            self.upstream = upstream
            self.plugin.max_age = upstream.max_age
            self.front.keep(upstream.max_age)
            if options is not None:
                self.cluster.use(options)

        return put_in_force

    async def _check(self, options: ClusterOptions) -> None:
        probe, now = KafkaCluster(options), self.cluster.nodes
        try:
            async with asyncio.timeout(_ANSWER):
                cluster = await probe.refresh()
        except (KafkaException, CredentialsFailed, TlsFailed, UnexpectedAnswer) as failed:
            raise ClusterUnusable(f"kafka.upstream: {failed}") from None
        except (ClientError, TimeoutError):
            return
        finally:
            await probe.stop()
        if now is not None and now.cluster_id != cluster.cluster_id:
            raise ClusterUnusable(
                f"kafka.upstream.bootstrap_servers: they are of the cluster {cluster.cluster_id}, and this server is "
                f"the gateway of {now.cluster_id}: another cluster takes a restart"
            )

    async def stop(self) -> None:
        """Drop all listings, and close all connections."""
        self.front.forget()
        await self.plugin.close()
        await self.cluster.stop()

    @property
    def problem(self) -> str | None:
        """The reason why clients should use another server, if ``ready`` is set in the settings."""
        return self.cluster.problem if self.upstream.ready else None

    def fit(self) -> None:
        """Drop listings that there is no room for any more."""
        self.plugin.snapshots.fit()


def _of_connections(upstream: KafkaUpstreamSettings) -> tuple[object, ...]:
    return upstream.bootstrap_servers, upstream.timeout, upstream.tls, upstream.sasl


def cluster_options(upstream: KafkaUpstreamSettings) -> ClusterOptions:
    """The options for requests to the cluster."""
    return ClusterOptions(
        tuple(
            address
            for server in upstream.bootstrap_servers
            for address in service_addresses(f"kafka://{server}", {"kafka": _DEFAULT_PORT})
        ),
        brokers_tls(upstream.tls),
        _own_credentials(upstream),
        request_timeout=upstream.timeout,
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
    """A function that reads a secret, for each connection."""

    async def read() -> str:
        try:
            data = await asyncio.to_thread(source.read_secret)
            return data.decode().rstrip("\r\n")
        except OSError as error:
            raise CredentialsFailed(f"{setting}: cannot read {error.filename}: {error.strerror}") from None
        except ValueError as error:  # also for bytes that are not text
            raise CredentialsFailed(f"{setting}: {error}") from None

    return read
