"""A real Apache Pulsar standalone broker for tests and benchmarks, started from Maven Central's jars."""

from __future__ import annotations

from tests.interop.maven import PeerUnavailable
from tests.interop.pulsar_peer.admin import Admin
from tests.interop.pulsar_peer.broker import PulsarBroker
from tests.interop.pulsar_peer.jars import admin_tool_jars, peer_jars
from tests.interop.pulsar_peer.security import ADMIN, GATEWAY, Security

__all__ = [
    "ADMIN",
    "GATEWAY",
    "Admin",
    "PeerUnavailable",
    "PulsarBroker",
    "Security",
    "admin_tool_jars",
    "peer_jars",
]
