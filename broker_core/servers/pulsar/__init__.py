"""The server of Pulsar's binary protocol: bytes in, listing requests out; answers in, bytes out."""

from __future__ import annotations

from broker_core.servers.pulsar.catalog_lookups import CatalogLookups
from broker_core.servers.pulsar.command_handler import PulsarOptions
from broker_core.servers.pulsar.listing_job import ClientPatterns
from broker_core.servers.pulsar.pattern_lookups import OwnAddress, PatternLookups
from broker_core.servers.pulsar.relayed_lookups import RelayedLookups
from broker_core.servers.pulsar.server import PulsarServer

__all__ = [
    "CatalogLookups",
    "ClientPatterns",
    "OwnAddress",
    "PatternLookups",
    "PulsarOptions",
    "PulsarServer",
    "RelayedLookups",
]
