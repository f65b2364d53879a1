"""The server of Kafka's protocol for the settings of a broker, and the parts of the broker that it uses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial

from broker_core.access import Asker, Clients
from broker_core.catalog import CatalogLister, KafkaAclReader
from broker_core.metrics import Metrics
from broker_core.pipeline import ListingTables, Pipeline
from broker_core.servers.admission import FileBudget
from broker_core.servers.arrival import TlsEntrance
from broker_core.servers.kafka.apis import HANDLERS
from broker_core.servers.kafka.callers.authorizer import Authorizer
from broker_core.servers.kafka.callers.client_identities import ClientIdentities, verified_by_cluster
from broker_core.servers.kafka.cluster.cluster_front import ClusterFront
from broker_core.servers.kafka.request_metrics import RequestMetrics
from broker_core.servers.kafka.sasl.mechanisms import check_mechanisms
from broker_core.servers.kafka.server import KafkaServer
from broker_core.servers.kafka.services import ConnectionTimes, KafkaOptions, KafkaServices
from broker_core.servers.kafka.topics.encoded_configs import EncodedConfigs, checked_configs
from broker_core.servers.kafka.topics.listed_topics import ListedTopics
from broker_core.servers.kafka.topics.named_topics import NamedTopics
from broker_core.service import Admission, Find, Logins, TopicEditor
from broker_core.settings import KafkaSettings, Settings

__all__ = ["kafka_server"]


def kafka_server(
    settings: Settings,
    pipeline: Pipeline,
    metrics: Metrics,
    files: FileBudget,
    find: Find,
    admission: Admission,
    *,
    changes: TopicEditor | None,
    tls: TlsEntrance | None,
    identify: Callable[[Asker], Asker] | None = None,
    clients: Clients | None = None,
    front: ClusterFront | None = None,
    tables: ListingTables | None = None,
) -> KafkaServer:
    """The server of ``[kafka]``, which listens to nobody yet. ``changes`` is ``None`` before a cluster.

    ``identify`` changes the identity of a connection once more; ``front`` is the Kafka cluster that it is the gateway
    of, and ``tables`` are the tables of its topics. Raises
    :exc:`~.sasl.mechanisms.MechanismUnusable`, and :exc:`~broker_core.kafka.configs.InvalidConfig` for
    ``[kafka.configs]``.
    """
    kafka = settings.kafka
    assert kafka is not None
    configs = EncodedConfigs(checked_configs(kafka))
    catalog = None if changes is None else changes.catalog
    file = None if catalog is None else catalog.file
    mechanisms = kafka.sasl.mechanisms
    elsewhere = partial(verified_by_cluster, front.cluster) if front is not None and front.forwards else None
    if elsewhere is None:
        check_mechanisms(mechanisms, admission.authenticator.verifies, has_users=catalog is not None)
    lister = pipeline.lister
    if front is None and isinstance(lister, CatalogLister):
        tables = lister.topic_tables()
    authorizer = Authorizer()
    if front is None:
        authorizer = Authorizer(kafka, None if file is None else KafkaAclReader(file))
    listed = ListedTopics(pipeline, authorizer, tables)
    metrics.gauge(
        "kafka_names_left_out",
        "Topics that Kafka clients are not shown for their names, by the namespaces that were listed.",
        lambda: {(str(namespace),): count for namespace, count in listed.every.left_out.items()},
        "namespace",
    )
    services = KafkaServices(
        pipeline,
        metrics,
        _options(kafka, settings, files),
        _mark(kafka) if file is None else file.catalog_id,
        listed,
        NamedTopics(find, authorizer),
        catalog,
        authorizer,
        ClientIdentities(kafka, admission, Logins(admission, file, elsewhere), identify),
        changes,
        configs,
        quotas=admission.quotas,
        front=front,
        requests=RequestMetrics(metrics, sorted(row.api.name for row in HANDLERS.values())),
    )
    return KafkaServer(services, tls=tls, clients=clients)


def _mark(kafka: KafkaSettings) -> str:
    """The id of a cluster that has no catalogue, equal after each start."""
    return hashlib.sha256(str(kafka.listen).encode()).hexdigest()[:16]


def _options(kafka: KafkaSettings, settings: Settings, files: FileBudget) -> KafkaOptions:
    connections = settings.limits.connections
    return KafkaOptions(
        kafka,
        settings.limits,
        ConnectionTimes(settings.pulsar.write_timeout, settings.pulsar.min_write_rate),
        connections=files.clients if connections == "auto" else connections,
        file_ceiling=files.ceiling,
    )
