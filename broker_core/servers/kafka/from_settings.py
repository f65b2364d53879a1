"""The server of Kafka's protocol for the settings of a broker, and the parts of the broker that it uses."""

from __future__ import annotations

import hashlib

from broker_core.catalog import CatalogLister, SqliteCatalog
from broker_core.kafka.configs import InvalidConfig, check_broker_configs
from broker_core.metrics.metrics import Metrics
from broker_core.pipeline import Pipeline
from broker_core.servers.admission import FileBudget
from broker_core.servers.arrival import TlsEntrance
from broker_core.servers.kafka.authorizer import AllowAll
from broker_core.servers.kafka.listed_topics import ListedTopics
from broker_core.servers.kafka.options import ConnectionTimes, KafkaOptions
from broker_core.servers.kafka.server import KafkaServer
from broker_core.servers.kafka.services import KafkaServices
from broker_core.settings import KafkaSettings, Settings

__all__ = ["kafka_server"]


def kafka_server(
    settings: Settings,
    pipeline: Pipeline,
    metrics: Metrics,
    files: FileBudget,
    *,
    catalog: SqliteCatalog | None,
    tls: TlsEntrance | None,
) -> KafkaServer:
    """The server of ``[kafka]``, which listens to nobody yet. ``catalog`` is ``None`` before a cluster.

    Raises :exc:`~broker_core.kafka.configs.InvalidConfig` for ``[kafka.configs]``.
    """
    assert settings.kafka is not None
    try:
        check_broker_configs(settings.kafka.configs)
    except InvalidConfig as error:
        raise InvalidConfig(f"kafka.configs: {error}") from None
    options = _options(settings.kafka, settings, files)
    cluster_id = _mark(settings.kafka) if catalog is None else catalog.catalog_id
    lister = pipeline.lister
    tables = lister.topic_tables() if isinstance(lister, CatalogLister) else None
    authorizer = AllowAll()
    topics = ListedTopics(pipeline, authorizer, tables, catalog)
    services = KafkaServices(pipeline, metrics, options, cluster_id, topics, catalog, authorizer)
    return KafkaServer(services, tls=tls)


def _mark(kafka: KafkaSettings) -> str:
    """The id of a cluster that has no catalogue: the same after each start."""
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
