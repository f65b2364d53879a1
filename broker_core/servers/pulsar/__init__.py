"""The server of Pulsar's binary protocol: bytes in, listing requests out; answers in, bytes out."""

from __future__ import annotations

from broker_core.servers.pulsar.listing_command import RequestBounds
from broker_core.servers.pulsar.lookups import Lookups, StandaloneLookups
from broker_core.servers.pulsar.options import PulsarOptions
from broker_core.servers.pulsar.server import PulsarServer
from broker_core.servers.pulsar.topic_lookups import TopicLookups

__all__ = ["Lookups", "PulsarOptions", "PulsarServer", "RequestBounds", "StandaloneLookups", "TopicLookups"]
