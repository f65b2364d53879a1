"""The server of Pulsar's binary protocol: bytes in, listing requests out; answers in, bytes out."""

from __future__ import annotations

from broker_core.servers.pulsar.catalog_partitions import CatalogPartitions
from broker_core.servers.pulsar.lookup_service import LookupService
from broker_core.servers.pulsar.options import PulsarOptions
from broker_core.servers.pulsar.plugin_topic_lookups import PluginTopicLookups
from broker_core.servers.pulsar.server import PulsarServer
from broker_core.servers.pulsar.standalone_lookups import StandaloneLookups

__all__ = [
    "CatalogPartitions",
    "LookupService",
    "PluginTopicLookups",
    "PulsarOptions",
    "PulsarServer",
    "StandaloneLookups",
]
