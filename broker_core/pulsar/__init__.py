"""The server of Pulsar's binary protocol: bytes in, listing requests out; answers in, bytes out."""

from __future__ import annotations

from broker_core.pulsar.listing_command import RequestBounds
from broker_core.pulsar.lookups import Lookups, StandaloneLookups
from broker_core.pulsar.options import PulsarOptions
from broker_core.pulsar.server import PulsarServer
from broker_core.pulsar.topic_lookups import TopicLookups

__all__ = ["Lookups", "PulsarOptions", "PulsarServer", "RequestBounds", "StandaloneLookups", "TopicLookups"]
