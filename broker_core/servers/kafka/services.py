"""The parts and options that the handlers of all Kafka clients of a server use."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.catalog import AsyncCatalog
from broker_core.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.servers.kafka.callers.authorizer import Authorizer
from broker_core.servers.kafka.callers.client_identities import ClientIdentities
from broker_core.servers.kafka.cluster.cluster_front import ClusterFront
from broker_core.servers.kafka.large_requests import LargeRequests
from broker_core.servers.kafka.request_metrics import RequestMetrics
from broker_core.servers.kafka.topics.encoded_configs import EncodedConfigs
from broker_core.servers.kafka.topics.listed_topics import ListedTopics
from broker_core.servers.kafka.topics.named_topics import NamedTopics
from broker_core.service import Quotas, TopicEditor
from broker_core.settings import KafkaSettings, LimitsSettings

__all__ = ["ConnectionTimes", "KafkaOptions", "KafkaServices", "ShownNode"]


@dataclass(frozen=True, slots=True)
class ConnectionTimes:
    """The times of connections, in seconds, and ``min_write_rate`` in bytes a second.

    A client is looked at every ``keep_alive`` seconds; one without requests at ``idle`` looks is closed, and one that
    is not authenticated after two.
    """

    write_timeout: float = 15.0
    min_write_rate: int = 256 * 1024
    keep_alive: float = 30.0
    idle: int = 20


@dataclass(slots=True)
class KafkaOptions:
    """The tables of settings that a server reads, and values that are known only at its start.

    ``connections`` bounds how many clients are connected (``None``: no bound). A client whose file descriptor is
    ``file_ceiling`` or above gets no place. ``time_budget`` is the seconds that one request may take.
    """

    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    limits: LimitsSettings = field(default_factory=LimitsSettings)
    times: ConnectionTimes = field(default_factory=ConnectionTimes)
    connections: int | None = None
    file_ceiling: int | None = None
    time_budget: float = 25.0


@dataclass(frozen=True, slots=True)
class ShownNode:
    """The one node that clients of a listener see: they connect to ``host`` and ``port`` for all requests.

    Before a Kafka cluster ``of_cluster`` is its node at this port, ``None`` at the listener's own.
    """

    node_id: int
    host: str
    port: int
    of_cluster: int | None = None
    tls: bool = False


@dataclass(frozen=True, slots=True)
class KafkaServices:
    """Services that handlers of requests use.

    ``catalog`` is the embedded catalogue, and ``changes`` are made in it; both are ``None`` before a cluster.
    ``cluster_id`` is the text of a topic id.
    """

    pipeline: Pipeline
    metrics: Metrics
    options: KafkaOptions
    cluster_id: str
    topics: ListedTopics
    named: NamedTopics
    catalog: AsyncCatalog | None = None
    authorizer: Authorizer = field(default_factory=Authorizer)
    identities: ClientIdentities = field(default_factory=lambda: ClientIdentities(KafkaSettings()))
    changes: TopicEditor | None = None
    configs: EncodedConfigs = field(default_factory=lambda: EncodedConfigs({}))
    large_requests: LargeRequests = field(default_factory=LargeRequests)
    quotas: Quotas = field(default_factory=Quotas)
    #: The Kafka cluster whose gateway this is.
    front: ClusterFront | None = None
    requests: RequestMetrics = field(default_factory=lambda: RequestMetrics(Metrics()))
